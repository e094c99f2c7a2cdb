"""Write expected_bits.txt: reproducible results by the definition in docs/numerics.md, written once more.

It shares nothing with the library. Lines are operation, dtype, n, and the results as hexadecimal floats. The elements
are those of element(), which the tests compute, too. With the argument softmax, write expected_softmax_bits.txt:
operation, dtype, result dtype, n, scale, and the results of the elements 0, n // 3 and n - 1.
"""

import math
import struct
import sys
from fractions import Fraction

SIZES = (0, 1, 2, 3, 31, 255, 256, 257, 511, 512, 513, 1000, 1023, 1025, 2049, 3584, 4097, 65537)
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8}
DIGITS = {"f16": (11, -24), "bf16": (8, -133), "f32": (24, -149), "f64": (53, -1074)}


def hashed(i):
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        i = (i ^ i >> shift) * factor & 0xFFFFFFFF
    return i ^ i >> 16


def element(dtype, op, i):
    h = hashed(i)
    sign = -1.0 if h >> 31 else 1.0
    if op == "logsumexp":  # quarters, whose maxima are on both sides of where origins change, and 3 apart
        most = (256.0 if dtype == "f64" else 32.0) * (-1 if dtype in ("f16", "f64") else 1)
        return most + (h >> 25) / 4 - 31.75 + (0.0, 3.0, -3.0)[(i >> 10) % 3]
    if op == "product":  # near 1
        return sign * (1 + (h % 7 - 3) * 2.0**-7 if BYTES[dtype] == 2 else 1 + (h % 255 - 127) * 2.0**-21)
    digits = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}[dtype]
    bits = h & 0x7FFFFF
    bits = bits << 29 | hashed(~i & 0xFFFFFFFF) >> 3 if dtype == "f64" else bits & (1 << digits) - 1
    exponent = (h >> 23 & 15) - 8 if BYTES[dtype] == 2 else (h >> 23 & 63) - 32
    return sign * (1 + bits * 2.0**-digits) * 2.0**exponent


class Arithmetic:
    """IEEE operations of one format, on Python floats that hold its values.

    Those of f32 are rounded from doubles, which have more than twice its digits: that rounds once in effect. A fused
    multiply-add is exact in fractions.
    """

    def __init__(self, dtype):
        self.digits, self.least = DIGITS[dtype]

    def narrowed(self, x):
        return x if self.digits == 53 else struct.unpack("f", struct.pack("f", x))[0]

    def rounded(self, exact):
        if exact == 0:
            return 0.0
        unit = Fraction(2) ** max(math.frexp(float(exact))[1] - self.digits, self.least)
        while abs(exact) >= unit * 2**self.digits:  # float() may have rounded to the next power
            unit *= 2
        return float(round(exact / unit) * unit)  # ties to even

    def stored(self, x):
        return math.copysign(self.rounded(Fraction(x)), x)

    def add(self, a, b):
        return self.narrowed(a + b)

    def mul(self, a, b):
        return self.narrowed(a * b)

    def div(self, a, b):
        return math.nan if b == 0 else self.narrowed(a / b)

    def fma(self, a, b, c):
        return self.rounded(Fraction(a) * Fraction(b) + Fraction(c))

    def sqrt(self, a):
        return self.narrowed(math.sqrt(a))


class Tree:
    def __init__(self, dtype, op, result=None):
        self.dtype, self.op, self.a = dtype, op, Arithmetic("f64" if dtype == "f64" else "f32")
        self.result_dtype, self.is_reduced = result, result in ("f16", "bf16") and self.a.digits == 24
        self.chunk = 2048 // BYTES[dtype]
        narrow = self.a.digits == 24
        of_f32 = ("0x1.62e4p-1", "0x1.7f7d1cp-20", "0x1.6a09e6p0")
        of_f64 = ("0x1.62e42feep-1", "0x1.a39ef35793c76p-33", "0x1.6a09e667f3bcdp0")
        self.high, self.low, self.root = map(float.fromhex, of_f32 if narrow else of_f64)
        of_f32 = ("1", "1", "0x1.fffffcp-2", "0x1.555492p-3", "0x1.5558aap-5", "0x1.12396cp-7", "0x1.6a5232p-10")
        of_f64 = [1 / float(math.factorial(j)) for j in range(14)]
        self.coefficients = [float.fromhex(c) for c in of_f32] if narrow else of_f64
        of_f32 = ("1", "0x1.62e432p-1", "0x1.ebfbe4p-3", "0x1.c6ad88p-5", "0x1.3b26f2p-7", "0x1.5fcb7ap-10",
                  "0x1.462706p-13")
        of_f64 = [1.0]
        for _ in range(13):
            of_f64.append(of_f64[-1] * float.fromhex("0x1.62e42fefa39efp-1"))
        of_f64 = [c / float(math.factorial(j)) for j, c in enumerate(of_f64)]
        self.powers = [float.fromhex(c) for c in of_f32] if narrow else of_f64

    def fold(self, leaves, combine, absent):
        leaves = leaves + [absent] * (self.chunk - len(leaves))
        while len(leaves) > 1:
            half = len(leaves) // 2
            leaves = [combine(leaves[r], leaves[r + half]) for r in range(half)]
        return leaves[0]

    def node(self, chunks, combine):
        level = chunks
        while len(level) > 1:
            pairs = [combine(*level[i : i + 2]) for i in range(0, len(level) - 1, 2)]
            level = pairs + level[len(pairs) * 2 :]
        return level[0]

    def result(self, x, y):
        a, op = self.a, self.op
        pieces = [x[i : i + self.chunk] for i in range(0, len(x), self.chunk)]
        if op == "mean_variance":
            return self.moments(pieces)
        if op == "logsumexp":
            return self.log_sum_exp(pieces)
        if op == "product":
            return [self.node([self.fold(p, a.mul, 1.0) for p in pieces] or [1.0], a.mul)]
        leaves = [a.mul(s, t) for s, t in zip(x, y)] if op == "dot" else x
        if op in ("sum_of_squares", "l2_norm"):
            leaves = [a.mul(v, v) for v in x]
        if op == "l1_norm":
            leaves = [abs(v) for v in x]
        pieces = [leaves[i : i + self.chunk] for i in range(0, len(leaves), self.chunk)]
        total = a.add(self.node([self.fold(p, a.add, -0.0) for p in pieces] or [-0.0], a.add), 0.0)
        if op == "mean":
            return [a.div(total, float(len(x))) if x else math.nan]
        return [a.sqrt(total) if op == "l2_norm" else total]

    def moments(self, pieces):
        a = self.a

        def of_chunk(piece):
            p = piece[0]
            y = [a.add(v, -p) for v in piece]
            total = self.fold(y, a.add, -0.0)
            mean = a.div(total, float(len(piece)))
            e = [a.add(v, -mean) for v in y]
            return len(piece), p, total, self.fold([a.mul(v, v) for v in e], a.add, -0.0)

        def combine(left, right):
            m_a, p_a, s_a, q_a = left
            m_b, p_b, s_b, q_b = right
            n_a, n_b = float(m_a), float(m_b)
            mean_a, mean_b = a.div(s_a, n_a), a.div(s_b, n_b)
            between = a.add(p_b, -p_a)
            apart = a.add(between, a.add(mean_b, -mean_a))
            weight = a.mul(n_a, a.div(n_b, a.add(n_a, n_b)))
            keeps_a = abs(mean_a) <= abs(mean_b)
            moved = a.mul(between, n_b) if keeps_a else a.mul(-between, n_a)
            squares = a.add(a.add(q_a, q_b), a.mul(a.mul(apart, apart), weight))
            return m_a + m_b, p_a if keeps_a else p_b, a.add(a.add(s_a, s_b), moved), squares

        if not pieces:
            return [math.nan, math.nan]
        m, p, s, q = self.node([of_chunk(piece) for piece in pieces], combine)
        n = float(m)
        product = a.mul(p, n)
        total = a.add(product, s)
        of_product = a.add(total, -s)
        lost = a.add(
            a.fma(p, n, -product), a.add(a.add(product, -of_product), a.add(s, -a.add(total, -of_product)))
        )
        quotient = a.div(total, n)
        rest = a.add(a.fma(-quotient, n, total), lost)
        return [a.add(quotient, a.div(rest, n)), a.div(q, n)]

    def exponential(self, d, lowest, lift):
        """2^lift * exp(d), or that of lowest."""
        a = self.a
        d = max(d, lowest)
        k = float(round(Fraction(d) * Fraction(a.rounded(Fraction(1.4426950408889634)))))
        r = a.fma(-k, self.low, a.fma(-k, self.high, d))
        p = 0.0
        for coefficient in reversed(self.coefficients):
            p = a.fma(p, r, coefficient)
        return a.mul(p, 2.0 ** (lift + int(k)))

    def logarithm(self, s):
        a, narrow = self.a, self.a.digits == 24
        m, k = math.frexp(s)
        m, k = 2 * m, k - 1
        if m > self.root:
            m, k = m / 2, k + 1
        f = a.add(m, -1.0)
        z = a.div(f, a.add(f, 2.0))
        w = a.mul(z, z)
        q = 0.0
        for j in range(5 if narrow else 11, -1, -1):
            q = a.fma(q, w, a.div(2.0, 2.0 * j + 1))
        return a.fma(float(k), self.high, a.fma(float(k), self.low, a.mul(z, q)))

    def log_sum_exp(self, pieces):
        a, narrow = self.a, self.a.digits == 24
        most_near, lowest, lowest_normal, lift = (32, -104.0, -87.0, 64) if narrow else (256, -746.0, -708.0, 512)

        def near(x):
            return self.exponential(x, lowest_normal, 0)

        def below(d):
            return a.mul(self.exponential(d, lowest, lift), 2.0**-lift)

        def origin(m):
            return 0.0 if abs(m) <= most_near else m

        def of_chunk(piece):
            m = max(piece)
            return m, self.fold([near(a.add(v, -origin(m))) for v in piece], a.add, -0.0)

        def combine(left, right):
            m = max(left[0], right[0])
            parts = [a.mul(s, below(a.add(origin(largest), -origin(m)))) for largest, s in (left, right)]
            return m, a.add(*parts)

        if not pieces:
            return [-math.inf]
        m, s = self.node([of_chunk(piece) for piece in pieces], combine)
        return [a.add(m, self.logarithm(a.div(s, near(a.add(m, -origin(m))))))]

    def weight_of(self, origin, factor):
        """The function x -> 2^(lift - level) * exp(x * factor / 2), for rows whose heaviest element is origin."""
        a, narrow = self.a, self.a.digits == 24
        window, center, lowest, lift, most = (64, 12, 172, 48, 2**20) if narrow else (512, 128, 1204, 184, 2**40)
        of_f32, of_f64 = ("0x1.715476p+0", "0x1.4ae0cp-26"), ("0x1.71547652b82fep+0", "0x1.777d0ffda0d24p-56")
        log_high, log_low = map(float.fromhex, of_f32 if narrow else of_f64)
        digits, e = math.frexp(factor)
        sign, digits, e = math.copysign(1.0, digits), abs(digits), e - 1
        high = a.mul(digits, log_high)
        low = a.fma(digits, log_low, a.fma(digits, log_high, -high))
        level, shift = 0, Fraction(0)
        if abs(Fraction(origin) * Fraction(2) ** e) <= most:
            n = round(Fraction(origin) * sign * Fraction(2) ** e * Fraction(high))
            level = window * round(Fraction(n - center, window))
        else:
            most_exponent = 127 if narrow else 1023
            e = min(e, most_exponent - 1 - max(-1, math.frexp(origin)[1] - 1))
            shift = Fraction(origin) * sign * Fraction(2) ** e
        least = a.mul(float(level - lowest), a.div(1.0, high))
        of_degree_4 = ("1", "0x1.62e12cp-1", "0x1.ec0374p-3", "0x1.c9fc8p-5", "0x1.3a0394p-7")
        coefficients = [float.fromhex(c) for c in of_degree_4] if self.is_reduced else self.powers

        def weight(x):
            z = max(a.rounded(Fraction(x) * sign * Fraction(2) ** e - shift), least)
            n = float(round(Fraction(z) * Fraction(high)))
            f = a.fma(z, high, -n)
            if not self.is_reduced:
                f = a.fma(z, low, f)
            p = 0.0
            for coefficient in reversed(coefficients):
                p = a.fma(p, f, coefficient)
            return a.mul(p, 2.0 ** (int(n) - level + lift))

        return weight

    def softmax(self, x, scale):
        """All results of softmax, and of log_softmax."""
        a, factor = self.a, 2 * scale
        origin = max(x, key=lambda v: v * factor)
        weight, half = self.weight_of(origin, factor), a.mul(origin, 0.5)
        weights = [weight(v) for v in x]
        pieces = [weights[i : i + self.chunk] for i in range(0, len(x), self.chunk)]
        total = self.node([self.fold(p, a.add, -0.0) for p in pieces], a.add)
        reciprocal, logarithm = a.div(1.0, total), self.logarithm(a.div(total, weight(origin)))

        def share(w):
            q = a.mul(w, reciprocal)
            if BYTES[self.result_dtype] == 2:
                return q
            return a.fma(a.fma(-q, total, w), reciprocal, q)

        exponents = [a.mul(a.fma(v, 0.5, -half), factor) for v in x]
        stored = Arithmetic(self.result_dtype).stored
        return [stored(share(w)) for w in weights], [stored(a.add(d, -logarithm)) for d in exponents]


def main():
    for op in ("sum", "mean", "sum_of_squares", "l1_norm", "l2_norm", "product", "dot", "mean_variance", "logsumexp"):
        for dtype in BYTES:
            for n in SIZES[: -1 if op == "logsumexp" else None]:
                x = [element(dtype, op, i) for i in range(n)]
                y = [element(dtype, op, i + n) for i in range(n)]
                results = Tree(dtype, op).result(x, y)
                spelled = " ".join("nan" if math.isnan(v) else "-inf" if v == -math.inf else v.hex() for v in results)
                sys.stdout.write(f"{op} {dtype} {n} {spelled}\n")


def softmax():
    results = {"f16": ("f32", "f16", "bf16"), "bf16": ("f32", "bf16"), "f32": ("f32", "f16"), "f64": ("f64", "f16")}
    for dtype, result in ((dtype, result) for dtype in BYTES for result in results[dtype]):
        for n in (1, 2, 7, 33, 255, 512, 1000, 1025, 2049, 5000):
            for scale in (1.0, -0.75):
                x = [element(dtype, "logsumexp", i) for i in range(n)]
                for op, all_of_op in zip(("softmax", "log_softmax"), Tree(dtype, "softmax", result).softmax(x, scale)):
                    spelled = " ".join(all_of_op[i].hex() for i in (0, n // 3, n - 1))
                    sys.stdout.write(f"{op} {dtype} {result} {n} {scale} {spelled}\n")


softmax() if sys.argv[1:] == ["softmax"] else main()
