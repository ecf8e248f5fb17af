/* The floor: what the operating system itself takes for a hook.

   posix_spawn of the command with three pipes, the payload written, the output drained, the end waited for. Nothing is
   planned, parsed or merged. Directory and environment are inherited.

     floor KIND PROGRAM [ARGUMENT ...] [-- KIND PROGRAM [ARGUMENT ...]] ...

   Each line on stdin, "KIND COUNT WIDTH PAYLOAD", asks for COUNT batches of WIDTH hooks of that kind at once, fed with
   that file; the answer is a line with the nanoseconds of each batch. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct hook {
    pid_t pid;
    int in, out, err;
    size_t written, printed;
};

static char *payload;
static size_t payload_size;

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void open_pipe(int ends[2]) {
    if (pipe(ends) != 0)
        fail("pipe");
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
}

static void feed(struct hook *hook) {
    while (hook->written < payload_size) {
        ssize_t count = write(hook->in, payload + hook->written, payload_size - hook->written);
        if (count < 0 && errno == EAGAIN)
            return;
        if (count < 0)
            break;
        hook->written += (size_t)count;
    }
    close(hook->in);
    hook->in = -1;
}

static void start(struct hook *hook, char *const argv[]) {
    int in[2], out[2], err[2], failure;
    posix_spawn_file_actions_t actions;
    open_pipe(in);
    open_pipe(out);
    open_pipe(err);
    fcntl(in[1], F_SETFL, O_NONBLOCK);
    hook->in = in[1];
    hook->out = out[0];
    hook->err = err[0];
    hook->written = hook->printed = 0;
    feed(hook);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    failure = posix_spawn(&hook->pid, argv[0], &actions, NULL, argv, environ);
    if (failure != 0) {
        errno = failure;
        fail(argv[0]);
    }
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    close(err[1]);
}

/* Reads once; false at the end of the stream. */
static int drain(struct hook *hook, int fd) {
    static char buffer[65536];
    ssize_t count = read(fd, buffer, sizeof buffer);
    if (count < 0)
        fail("read");
    hook->printed += (size_t)count;
    return count > 0;
}

static void finish(struct hook *hook) {
    int status, open = 2;
    struct pollfd fds[3] = {{hook->out, POLLIN, 0}, {hook->err, POLLIN, 0}, {hook->in, POLLOUT, 0}};
    while (open > 0) {
        if (poll(fds, 3, -1) < 0)
            fail("poll");
        for (int i = 0; i < 2; i++)
            if (fds[i].revents && !drain(hook, fds[i].fd)) {
                close(fds[i].fd);
                fds[i].fd = -1;
                open--;
            }
        if (fds[2].revents) {
            feed(hook);
            fds[2].fd = hook->in;
        }
    }
    if (hook->in >= 0)
        close(hook->in);
    if (waitpid(hook->pid, &status, 0) < 0)
        fail("waitpid");
    if (status != 0 || hook->printed == 0) {
        fprintf(stderr, "floor: the hook failed with status %d\n", status);
        exit(1);
    }
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void load(const char *name) {
    FILE *file = fopen(name, "rb");
    if (file == NULL)
        fail(name);
    fseek(file, 0, SEEK_END);
    payload_size = (size_t)ftell(file);
    rewind(file);
    free(payload);
    payload = malloc(payload_size + 1);
    if (payload == NULL || fread(payload, 1, payload_size, file) != payload_size)
        fail(name);
    fclose(file);
}

/* The command of a kind, ended by NULL like argv itself. */
static char **command_of(char **argv, int argc, const char *kind) {
    for (int i = 1; i < argc; i++)
        if (argv[i] != NULL && (i == 1 || argv[i - 1] == NULL) && strcmp(argv[i], kind) == 0)
            return argv + i + 1;
    fprintf(stderr, "floor: no command of the kind %s\n", kind);
    exit(64);
}

int main(int argc, char **argv) {
    char line[8192], kind[16], file[4096];
    int count, width;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--") == 0)
            argv[i] = NULL;
    signal(SIGPIPE, SIG_IGN);
    while (fgets(line, sizeof line, stdin) != NULL) {
        if (sscanf(line, "%15s %d %d %4095[^\n]", kind, &count, &width, file) != 4)
            return 64;
        load(file);
        char **command = command_of(argv, argc, kind);
        struct hook *hooks = calloc((size_t)width, sizeof *hooks);
        if (hooks == NULL)
            fail("calloc");
        for (int batch = 0; batch < count; batch++) {
            long long started = now();
            for (int i = 0; i < width; i++)
                start(&hooks[i], command);
            for (int i = 0; i < width; i++)
                finish(&hooks[i]);
            printf("%lld ", now() - started);
        }
        free(hooks);
        printf("\n");
        fflush(stdout);
    }
    return 0;
}
