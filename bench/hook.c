/* The smallest hook: reads its input, prints one line. What it takes is the operating system's. With MILLISECONDS it
   sleeps in between. */

#include <poll.h>
#include <unistd.h>

int main(void) {
    static const char answer[] = "{\"decision\": \"allow\"}\n";
    static char buffer[65536];
    while (read(0, buffer, sizeof buffer) > 0) {
    }
#ifdef MILLISECONDS
    poll(0, 0, MILLISECONDS);
#endif
    return write(1, answer, sizeof answer - 1) != sizeof answer - 1;
}
