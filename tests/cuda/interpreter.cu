// settings: O3.75 O0.80 fast.90a
// A machine with a stack, an array in local memory; a switch over what to do becomes brx.idx.
// the sum of x / 3^k, of that the rest modulo i, of its distance from 100 the square
__constant__ unsigned char code[] = {2, 0, 9, 9, 15, 3, 9, 2, 3, 6, 1, 10, 3, 12, 1, 14, 7, 8, 2, 156, 4, 13, 11, 24, 1, 5, 0};

extern "C" __global__ void interpreter(const int *x, int *y, int *steps)
{
    int stack[16], top = 0, i = blockIdx.x * blockDim.x + threadIdx.x, n = 0;
    stack[top++] = x[i];
    for (int pc = 0;; n++) {
        int a = stack[top - 1];
        switch (code[pc++]) {
        case 0: y[i] = a; steps[i] = n; return;
        case 1: stack[top++] = a; break;
        case 2: stack[top++] = (signed char)code[pc++]; break;
        case 3: top--; stack[top - 1] += a; break;
        case 4: top--; stack[top - 1] -= a; break;
        case 5: top--; stack[top - 1] *= a; break;
        case 6: top--; stack[top - 1] = a ? stack[top - 1] / a : -1; break;
        case 7: top--; stack[top - 1] = a ? stack[top - 1] % a : -1; break;
        case 8: stack[top - 1] = -a; break;
        case 9: stack[top - 1] = stack[top - 2]; stack[top - 2] = a; break;
        case 10: top--; pc = a > 0 ? code[pc] : pc + 1; break;
        case 11: pc = code[pc]; break;
        case 12: top--; break;
        case 13: stack[top - 1] = a < 0 ? -a : a; break;
        case 14: stack[top - 1] = i; break;
        case 15: stack[top++] = stack[top - 2]; break;
        default: y[i] = -12345; steps[i] = n; return;
        }
    }
}
