/* Prints what a program can observe of how it was started, once it has read its input. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

extern char **environ;

static void sets(const char *name, const sigset_t *set) {
    fprintf(stderr, "%s:", name);
    for (int number = 1; number < NSIG; number++) {
        if (sigismember(set, number) == 1) fprintf(stderr, " %d", number);
    }
    fputc('\n', stderr);
}

int main(int count, char **arguments) {
    static char text[1 << 20];
    size_t length = 0;
    ssize_t got;
    while ((got = read(0, text + length, sizeof text - 1 - length)) > 0) length += (size_t)got;
    char *stamp = strstr(text, "\"timestamp\"");
    fprintf(stderr, "input: %zu bytes, stamp %d, end %zd, again %zd\n", length, stamp != NULL, got, read(0, text, 1));

    for (int number = 0; number < count; number++) fprintf(stderr, "argument: %s\n", arguments[number]);
    for (char **each = environ; *each; each++) fprintf(stderr, "variable: %s\n", *each);
    fprintf(stderr, "folder: %s\n", getcwd(text, sizeof text));

    char *tested = getenv("TESTED");
    pid_t parent = tested ? atoi(tested) : 0;
    fprintf(stderr, "parent %d, leads group %d, leads session %d, of the parent's %d\n", getppid() == parent,
            getpgid(0) == getpid(), getsid(0) == getpid(), getsid(0) == getsid(parent));
    errno = 0;
    int terminal = open("/dev/tty", O_RDWR);
    fprintf(stderr, "terminal %d errno %d\n", terminal, errno);

    for (int fd = 0; fd < 1024; fd++) {
        struct stat status;
        int flags = fcntl(fd, F_GETFD);
        if (flags < 0 || fstat(fd, &status)) continue;
        struct pollfd polled = {.fd = fd, .events = POLLIN | POLLOUT};
        poll(&polled, 1, 0);
        fprintf(stderr, "descriptor %d: %x %x mode %o owner %d signal %d pipe %d tty %d ready %x\n", fd, flags,
                fcntl(fd, F_GETFL), status.st_mode, fcntl(fd, F_GETOWN), fcntl(fd, F_GETSIG), fcntl(fd, F_GETPIPE_SZ),
                isatty(fd), polled.revents);
    }

    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    sets("blocked", &set);
    sigpending(&set);
    sets("pending", &set);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action)) continue;
        fprintf(stderr, "signal %d: %s %x\n", number, action.sa_handler == SIG_DFL ? "default" : "other",
                (unsigned)action.sa_flags);
    }
    for (int limit = 0; limit < RLIM_NLIMITS; limit++) {
        struct rlimit values;
        if (!getrlimit(limit, &values)) {
            fprintf(stderr, "limit %d: %lx %lx\n", limit, (long)values.rlim_cur, (long)values.rlim_max);
        }
    }
    struct itimerval timer;
    getitimer(ITIMER_REAL, &timer);
    int death = -1;
    prctl(PR_GET_PDEATHSIG, &death);
    mode_t mask = umask(0);
    fprintf(stderr, "mask %o, timer %ld, personality %x, death %d, dumpable %d, slack %d, privileges %d, bits %x\n", mask,
            (long)timer.it_value.tv_sec, (unsigned)personality(0xffffffff), death, prctl(PR_GET_DUMPABLE),
            prctl(PR_GET_TIMERSLACK), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), (unsigned)prctl(PR_GET_SECUREBITS));
    cpu_set_t processors;
    sched_getaffinity(0, sizeof processors, &processors);
    fprintf(stderr, "nice %d, scheduler %d, processors %d, user %d %d, group %d %d\n", getpriority(PRIO_PROCESS, 0),
            sched_getscheduler(0), CPU_COUNT(&processors), getuid(), geteuid(), getgid(), getegid());
    puts("{\"systemMessage\": \"seen\"}");
    return 3;
}
