/*
 * mpiox_trace_jump.c - calls that do not return, because the program jumps out of them.
 *
 * Problem.   An error handler of MPI, or a handler of signals, may leave an MPI call by longjmp(). What the program
 *            calls then is not inside of it any more.
 * Algorithm. The jump's buffer has the stack pointer that the program goes back to; calls whose frames are below it are
 *            over. The C library keeps it mangled: turned by 17 bits and combined with a number of the process.
 * Guarantee. On x86-64 with the GNU C library exact. Elsewhere jumps are not looked at: calls behind one may be
 *            recorded as deeper than they are.
 */
#include <setjmp.h>
#include <string.h>

#include "mpiox_trace_wrap.h"

#if defined __x86_64__ && defined __GLIBC__ && !defined __ILP32__

enum { STACK_POINTER = 6, TURNED = 17 };

/* Where the program's stack will end. */
static uintptr_t stack_of(const struct __jmp_buf_tag *place)
{
    uintptr_t mangled, guard;

    memcpy(&mangled, (const char *)place->__jmpbuf + STACK_POINTER * sizeof mangled, sizeof mangled);
    __asm__("movq %%fs:0x30, %0" : "=r"(guard));
    return (mangled >> TURNED | mangled << (64 - TURNED)) ^ guard;
}

#define JUMP(name)                                                                                                     \
    BEHIND(void, name, (struct __jmp_buf_tag[1], int))                                                                 \
    MPIOX_TRACE_EXPORT __attribute__((noreturn)) void name(struct __jmp_buf_tag place[1], int value)                   \
    {                                                                                                                  \
        if (mpiox_trace_enabled() && mpiox_trace_self.frames > 0)                                                      \
            mpiox_trace_left(stack_of(place));                                                                         \
        NEXT(name)(place, value);                                                                                      \
        __builtin_unreachable();                                                                                       \
    }

#ifdef __clang__
#pragma clang diagnostic ignored "-Wincompatible-library-redeclaration"
#endif
void __longjmp_chk(struct __jmp_buf_tag place[1], int value) __attribute__((noreturn));

JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

#endif
