// colibri-engine: the native engine as a process on the serve protocol.
//
// Whatever is wrong before READY is one line on stderr and exit code 2; the end of input lets requests in flight finish
// and is exit code 0; a command stream without framing is exit code 1. A reader that goes away is death by SIGPIPE.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"
#include "loop.h"
#include "model.h"

#define READ_BYTES (1u << 20u)

// Where all threads compute, a reader that is woken up takes the processor from one of them. Further tokens of answers then
// wait for each other so long at most, the step to come included; nothing else waits, nor do tokens of slower steps.
#define HELD_SECONDS 0.5e-3

/* Writes everything that has collected; whole frames. */
static bool write_output(engine_loop *loop) {
    buffer *const output = &loop->output;
    size_t done = 0;
    while (done < output->size) {
        const ssize_t written = write(STDOUT_FILENO, output->data + done, output->size - done);
        if (written < 0 && errno != EINTR) {
            log_line("frames cannot be written: %s", strerror(errno));
            return false;
        }
        done += written > 0 ? (size_t)written : 0;
    }
    output->size = 0;
    loop->urgent = false;
    return true;
}

/* Whether the output may wait for the next step: `held` seconds so far, and the last step took `step`. */
static bool may_wait(const engine_loop *loop, double held, double step) {
    return !loop->urgent && loop->served->network.shared && held + step <= HELD_SECONDS;
}

/* Takes in what has arrived; waits for it when there is nothing to compute. False: the input has ended. */
static bool read_input(engine_loop *loop) {
    struct pollfd input = {STDIN_FILENO, POLLIN, 0};
    ssize_t got;
    if (poll(&input, 1, loop->in_flight != 0 ? 0 : -1) <= 0) {
        return true;
    }
    got = read(STDIN_FILENO, command_reader_room(&loop->reader, READ_BYTES), READ_BYTES);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) {
        return true;
    }
    if (got <= 0) {
        loop_end_input(loop);
        return false;
    }
    command_reader_fed(&loop->reader, (size_t)got);
    loop_receive(loop);
    return true;
}

static int serve(engine_loop *loop) {
    bool open = true;
    double held_since = 0.0; // while frames are held
    loop_greet(loop);
    if (!write_output(loop)) {
        return 1;
    }
    while ((open || loop->in_flight != 0) && !loop->broken) {
        const bool holding = loop->output.size != 0;
        double began;
        double ended;
        if (open) {
            open = read_input(loop);
        }
        if (holding && loop->urgent && !write_output(loop)) {
            return 1; // a prompt that has just come takes longer than tokens are held
        }
        began = seconds_now();
        if (loop->in_flight != 0 && !loop->broken) {
            loop_step(loop);
        }
        ended = seconds_now();
        held_since = holding ? held_since : ended;
        if (!may_wait(loop, ended - held_since, ended - began) && !write_output(loop)) {
            return 1;
        }
    }
    return loop->broken ? 1 : 0;
}

int main(int argument_count, char **arguments) {
    static model served;
    static engine_loop loop;
    const launch with = launch_read(argument_count, arguments);
    int code;
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    model_open(&served, &with);
    loop_open(&loop, &served);
    code = serve(&loop);
    loop_close(&loop);
    model_close(&served);
    return code;
}
