/* The smallest hook: reads its input, prints one line. What it takes is the operating system's. */

#include <unistd.h>

int main(void) {
    static const char answer[] = "{\"decision\": \"allow\"}\n";
    static char buffer[65536];
    while (read(0, buffer, sizeof buffer) > 0) {
    }
    return write(1, answer, sizeof answer - 1) != sizeof answer - 1;
}
