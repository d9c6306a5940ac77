// What malloc() and free() become: nvcc -arch=sm_80 --ptx -o heap.ptx heap.cu
struct node {
    node *next;
    int value;
};

// a list that is built by new, summed and taken apart, and an array
extern "C" __global__ void list(int *out, int n)
{
    node *head = nullptr;
    for (int i = 0; i < n; i++) {
        node *p = new node;
        p->next = head;
        p->value = i * (int)threadIdx.x;
        head = p;
    }
    int *a = (int *)malloc(n * sizeof *a), sum = 0;
    for (int i = 0; i < n; i++)
        a[i] = i;
    while (head) {
        node *p = head;
        sum += p->value + a[--n];
        head = p->next;
        delete p;
    }
    free(a);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// more than the heap, bit by bit; each piece is written by the thread that has it
extern "C" __global__ void churn(int *out, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) {
        int *a = (int *)malloc(4000 + i % 77);
        if (!a)
            continue;
        a[0] = i;
        a[999] = 1;
        sum += a[0] * a[999];
        free(a);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// all of the heap: how many pieces each thread got
extern "C" __global__ void exhaust(int *out, unsigned long long bytes)
{
    int n = 0;
    while (void *p = malloc(bytes)) {
        *(char *)p = 1;
        n++;
    }
    out[threadIdx.x] = n;
}

// one launch takes, another gives back
extern "C" __global__ void take(int **out)
{
    out[threadIdx.x] = (int *)malloc(8);
    *out[threadIdx.x] = (int)threadIdx.x;
}
extern "C" __global__ void give(int **in, int *out)
{
    out[threadIdx.x] = *in[threadIdx.x];
    free(in[threadIdx.x]);
    free(nullptr);
}

extern "C" __global__ void over(int *out, int n)
{
    int *a = (int *)malloc(40);
    out[threadIdx.x] = a[n];
    free(a);
}
extern "C" __global__ void after(int *out)
{
    volatile int *a = (int *)malloc(40);
    a[3] = 7;
    free((void *)a);
    out[threadIdx.x] = a[3];
}
extern "C" __global__ void undefined(int *out)
{
    int *a = (int *)malloc(40);
    out[threadIdx.x] = a[3];
    free(a);
}
extern "C" __global__ void wrong(int *out, int off, int times)
{
    char *a = (char *)malloc(40);
    for (int i = 0; i < times; i++)
        free(off < 0 ? (char *)out : a + off);
}
