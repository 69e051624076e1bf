/* A product of two matrices, and a walk that straddles lines: enough to miss in small caches. Without libc, so that a trace of
   it holds nothing else: gcc -O1 -static -nostdlib -fno-stack-protector program.c (x86-64 Linux). */
#define N 14
static double a[N][N], b[N][N], c[N][N];
static char bytes[4096];

static int work(void) {
  int i, j, k, sum = 0;
  for (i = 0; i < N; i++)
    for (j = 0; j < N; j++) {
      a[i][j] = i + j;
      b[i][j] = i - j;
    }
  for (i = 0; i < N; i++)
    for (j = 0; j < N; j++)
      for (k = 0; k < N; k++) c[i][j] += a[i][k] * b[k][j];
  for (i = 30; i + 8 < (int)sizeof bytes; i += 67) {
    sum += *(volatile int *)(bytes + i);
    *(volatile int *)(bytes + i + 1) += 1;
  }
  return sum + (int)c[3][5];
}

void _start(void) {
  int code = work() & 1;
  __asm__ volatile("syscall" : : "a"(60), "D"(code) : "rcx", "r11", "memory");
}
