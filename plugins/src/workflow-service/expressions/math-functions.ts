import { Refused } from "./cel-value.ts";
import type { FunctionGroup, LibraryFunction, Spend } from "./library-function.ts";

type Numeric = number | bigint;

/** Numbers: CEL's extension library `math`, and `sum` of Kubernetes. */
export const mathFunctions: FunctionGroup = {
  title: "Numbers",
  functions: [
    {
      usage: "int(VALUE), double(VALUE), string(VALUE)",
      summary: "Converts between numbers and texts. `int` removes decimals.",
      example: ["[int('7'), int(2.9), double('1.5')]", [7, 2, 1.5]],
    },
    rounding("ceil", "The next whole number that is not smaller.", ["math.ceil(1.2)", 2], Math.ceil),
    rounding("floor", "The next whole number that is not greater.", ["math.floor(-1.2)", -2], Math.floor),
    rounding(
      "round",
      "The nearest whole number; halves are rounded away from zero.",
      ["math.round(-2.5)", -3],
      (value) => Math.sign(value) * Math.round(Math.abs(value)),
    ),
    rounding("trunc", "The number without decimals.", ["math.trunc(-1.7)", -1], Math.trunc),
    rounding("sqrt", "The square root.", ["math.sqrt(81)", 9], Math.sqrt, "double"),
    {
      usage: "math.abs(NUMBER)",
      summary: "The number without its sign.",
      example: ["math.abs(-3)", 3],
      overloads: () => ({
        "MathNamespace.abs(int): int": (_: unknown, value: bigint) => inRange(value < 0n ? -value : value),
        "MathNamespace.abs(double): double": (_: unknown, value: number) => Math.abs(value),
      }),
    },
    {
      usage: "math.sign(NUMBER)",
      summary: "-1, 0 or 1.",
      example: ["math.sign(-3.5)", -1],
      overloads: () => ({
        "MathNamespace.sign(int): int": (_: unknown, value: bigint) => BigInt(Number(value > 0n) - Number(value < 0n)),
        "MathNamespace.sign(double): double": (_: unknown, value: number) => Math.sign(value),
      }),
    },
    extreme(
      "greatest",
      "The greatest of up to four numbers, or of a list of numbers.",
      ["math.greatest([1, 2.5, 2])", 2.5],
      (one, best) => one > best,
    ),
    extreme(
      "least",
      "The smallest of up to four numbers, or of a list of numbers.",
      ["math.least(3, 1.5)", 1.5],
      (one, best) => one < best,
    ),
    {
      usage: "LIST.sum()",
      summary: "The sum of a list of numbers.",
      example: ["[1, 2.5].sum()", 3.5],
      overloads: (spend) => ({
        "list.sum(): dyn": (list: readonly unknown[]) => {
          spend(list.length >> 3);
          const numbers = list.map(toNumeric);
          if (numbers.every((each) => typeof each === "bigint")) {
            return inRange(numbers.reduce<bigint>((sum, each) => sum + each, 0n));
          }
          return numbers.reduce<number>((sum, each) => sum + Number(each), 0);
        },
      }),
    },
  ],
};

function rounding(
  name: string,
  summary: string,
  example: LibraryFunction["example"],
  compute: (value: number) => number,
  ofInt: "int" | "double" = "int",
): LibraryFunction {
  return {
    usage: `math.${name}(NUMBER)`,
    summary,
    example,
    overloads: () => ({
      [`MathNamespace.${name}(double): double`]: (_: unknown, value: number) => compute(value),
      [`MathNamespace.${name}(int): ${ofInt}`]: (_: unknown, value: bigint) => (ofInt === "int" ? value : compute(Number(value))),
    }),
  };
}

function extreme(
  name: string,
  summary: string,
  example: LibraryFunction["example"],
  isBetter: (one: Numeric, best: Numeric) => boolean,
): LibraryFunction {
  const best = (values: readonly unknown[], spend: Spend): Numeric => {
    spend(values.length >> 3);
    const [first, ...others] = values.map(toNumeric);
    if (first === undefined) throw new Refused(`math.${name}() takes at least one number`);
    return others.reduce((found, each) => (isBetter(each, found) ? each : found), first);
  };
  return {
    usage: `math.${name}(NUMBER, …)`,
    summary,
    example,
    overloads: (spend) => ({
      [`MathNamespace.${name}(int): int`]: (_: unknown, value: bigint) => value,
      [`MathNamespace.${name}(double): double`]: (_: unknown, value: number) => value,
      [`MathNamespace.${name}(list): dyn`]: (_: unknown, values: readonly unknown[]) => best(values, spend),
      ...Object.fromEntries(
        [2, 3, 4].map((count) => [
          `MathNamespace.${name}(${Array.from({ length: count }, () => "dyn").join(", ")}): dyn`,
          (_: unknown, ...values: unknown[]) => best(values, spend),
        ]),
      ),
    }),
  };
}

function toNumeric(value: unknown): Numeric {
  if (typeof value === "bigint" || typeof value === "number") return value;
  throw new Refused("this function takes numbers only");
}

const MOST = 2n ** 63n - 1n;

function inRange(value: bigint): bigint {
  if (value > MOST || value < -MOST - 1n) throw new Refused("a number is too large");
  return value;
}
