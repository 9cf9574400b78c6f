import { Duration, UnsignedInt } from "@marcbachmann/cel-js/evaluator";
import { Refused, fieldsOf } from "./cel-value.ts";
import { chargeForList, chargeForValue, type FunctionGroup, type Spend } from "./library-function.ts";
import type { SyntaxNode } from "./syntax-tree.ts";

type List = readonly unknown[];

/** Lists: those of CEL, and of its extension libraries `lists` and `sets`. */
export const listFunctions: FunctionGroup = {
  title: "Lists",
  functions: [
    {
      usage: "size(LIST)",
      summary: "The number of elements; of an object, the number of its keys.",
      example: ["size([4, 5])", 2],
    },
    {
      usage: "LIST.map(x, EXPR), LIST.map(x, TEST, EXPR)",
      summary: "A list of the results for each element, or for each element for which TEST is true.",
      example: ["[1, 2, 3].map(x, x > 1, x * 10)", [20, 30]],
    },
    {
      usage: "LIST.filter(x, TEST)",
      summary: "The elements for which TEST is true.",
      example: ["[1, 2, 3].filter(x, x > 1)", [2, 3]],
    },
    {
      usage: "LIST.all(x, TEST), LIST.exists(x, TEST), LIST.exists_one(x, TEST)",
      summary: "Whether TEST is true for all elements, for at least one, or for exactly one.",
      example: ["[1, 2].all(x, x > 0) && [1, 2].exists_one(x, x > 1)", true],
    },
    {
      usage: "LIST.sort()",
      summary: "The elements in ascending order: numbers, texts, booleans, timestamps or durations of one type.",
      example: ["[3, 1.5, 2].sort()", [1.5, 2, 3]],
      overloads: (spend) => ({ "list.sort(): list<dyn>": (list: List) => sortedBy(list, list, spend) }),
    },
    {
      usage: "LIST.sortBy(x, KEY)",
      summary: "The elements in ascending order of a key. Elements with equal keys keep their order.",
      example: ["[{'n': 2}, {'n': 1}].sortBy(x, x.n)", [{ n: 1 }, { n: 2 }]],
      overloads: (spend) => ({ "list.sortBy(ast, ast): list<dyn>": sortByMacro(spend) }),
    },
    {
      usage: "LIST.distinct()",
      summary: "The elements without repetitions; the first of equal elements remains.",
      example: ["['b', 'a', 'b', 1, 1.0].distinct()", ["b", "a", 1]],
      overloads: (spend) => ({
        "list.distinct(): list<dyn>": (list: List) => {
          const seen = new Set<string>();
          return list.filter((each) => seen.size < seen.add(keyed(each, spend)).size);
        },
      }),
    },
    {
      usage: "LIST.reverse()",
      summary: "The elements in reverse order.",
      example: ["[1, 2, 3].reverse()", [3, 2, 1]],
      overloads: (spend) => ({
        "list.reverse(): list<dyn>": (list: List) => {
          chargeForList(list.length, spend);
          return list.toReversed();
        },
      }),
    },
    {
      usage: "LIST.slice(START, END)",
      summary: "The elements from START up to END. Both are within the list.",
      example: ["[1, 2, 3, 4].slice(1, 3)", [2, 3]],
      overloads: (spend) => ({
        "list.slice(int, int): list<dyn>": (list: List, start: bigint, end: bigint) => {
          if (start < 0n || end < start || end > list.length)
            throw new Refused("slice() takes positions of the list, START before END");
          chargeForList(Number(end - start), spend);
          return list.slice(Number(start), Number(end));
        },
      }),
    },
    {
      usage: "LIST.flatten(DEPTH)",
      summary: "The elements of nested lists. Default of DEPTH: 1 level.",
      example: ["[1, [2, [3]]].flatten(2)", [1, 2, 3]],
      overloads: (spend) => ({
        "list.flatten(): list<dyn>": (list: List) => flattened(list, 1n, spend),
        "list.flatten(int): list<dyn>": (list: List, depth: bigint) => flattened(list, depth, spend),
      }),
    },
    {
      usage: "lists.range(COUNT)",
      summary: "The whole numbers from 0 up to COUNT, without COUNT.",
      example: ["lists.range(3)", [0, 1, 2]],
      overloads: (spend) => ({
        "ListsNamespace.range(int): list<int>": (_: unknown, count: bigint) => {
          if (count < 0n) throw new Refused("lists.range() takes a number from 0");
          chargeForList(Number(count), spend);
          // Whole numbers of CEL are slow to make.
          spend(Number(count >> 1n));
          return Array.from({ length: Number(count) }, (_each, index) => BigInt(index));
        },
      }),
    },
    ...setFunctions(),
  ],
};

function setFunctions(): FunctionGroup["functions"] {
  const of = (list: List, spend: Spend) => new Set(list.map((each) => keyed(each, spend)));
  const test = (name: string, holds: (one: ReadonlySet<string>, other: ReadonlySet<string>) => boolean) => (spend: Spend) => ({
    [`SetsNamespace.${name}(list, list): bool`]: (_: unknown, one: List, other: List) => holds(of(one, spend), of(other, spend)),
  });
  return [
    {
      usage: "sets.contains(LIST, OTHER)",
      summary: "Whether a list contains every element of another list.",
      example: ["sets.contains([1, 2, 3], [3, 1.0])", true],
      overloads: test("contains", (one, other) => other.isSubsetOf(one)),
    },
    {
      usage: "sets.intersects(LIST, OTHER)",
      summary: "Whether two lists have an element in common.",
      example: ["sets.intersects(['a', 'b'], ['b', 'c'])", true],
      overloads: test("intersects", (one, other) => !one.isDisjointFrom(other)),
    },
    {
      usage: "sets.equivalent(LIST, OTHER)",
      summary: "Whether two lists have the same elements, in any order and number.",
      example: ["sets.equivalent([1, 2, 2], [2, 1])", true],
      overloads: test("equivalent", (one, other) => one.size === other.size && one.isSubsetOf(other)),
    },
  ];
}

function keyed(value: unknown, spend: Spend): string {
  chargeForValue(value, spend);
  return valueKey(value);
}

function flattened(list: List, depth: bigint, spend: Spend): unknown[] {
  if (depth < 0n) throw new Refused("flatten() takes a depth from 0");
  const made: unknown[] = [];
  const walk = (values: List, left: number): void => {
    for (const each of values) {
      spend(1);
      if (Array.isArray(each) && left > 0) walk(each, left - 1);
      else made.push(each);
    }
    chargeForList(made.length, () => {});
  };
  walk(list, Math.min(Number(depth), 1000));
  return made;
}

interface Written {
  readonly ast: SyntaxNode;
  readonly args: readonly [SyntaxNode, SyntaxNode];
  readonly receiver: SyntaxNode;
}

/** The macro `list.sortBy(x, KEY)`. The library's macros have no public types. */
function sortByMacro(spend: Spend) {
  return ({ ast, args, receiver }: Written) => {
    const [variable, key] = args;
    let inner: any;
    return {
      ast,
      typeCheck(checker: any, _macro: unknown, context: any) {
        if (variable.op !== "id") {
          throw checker.createError("invalid_macro_argument", "sortBy(x, KEY) takes the name of a variable first", variable);
        }
        const list = checker.check(receiver, context);
        if (list.kind !== "dyn" && list.kind !== "list") {
          throw checker.createError(
            "no_matching_overload",
            `found no matching overload for '${list.type}.sortBy(ast, ast)'`,
            ast,
          );
        }
        inner = context.forkWithVariable(variable.args, list.valueType ?? checker.getType("dyn"));
        checker.check(key, inner);
        return list;
      },
      evaluate(evaluator: any, _macro: unknown, context: any) {
        const list: unknown = evaluator.run(receiver, context);
        if (!Array.isArray(list)) throw new Refused("sortBy() takes a list");
        const keys = list.map((each) => {
          spend(1);
          return evaluator.run(key, inner.reuse(context).setIterValue(each, evaluator)) as unknown;
        });
        return sortedBy(list, keys, spend);
      },
    };
  };
}

type Sortable = string | number | bigint;

/** The same elements, ordered by their keys. Equal keys keep their order. Throws Refused if the keys cannot be compared with each other. */
function sortedBy(elements: readonly unknown[], keys: readonly unknown[], spend: Spend): unknown[] {
  const sortable = keys.map(toSortable);
  if (new Set(sortable.map(({ kind }) => kind)).size > 1) throw new Refused("only values of one type can be sorted");
  spend(Math.ceil((elements.length * Math.ceil(Math.log2(elements.length + 1))) / 8));
  return sortable
    .map(({ value }, index) => ({ value, element: elements[index] }))
    .sort((one, other) => {
      if (typeof one.value === "string" && typeof other.value === "string") {
        spend(Math.min(one.value.length, other.value.length) >> 6);
      }
      if (one.value === other.value) return 0;
      return one.value < other.value ? -1 : 1;
    })
    .map(({ element }) => element);
}

function toSortable(key: unknown): { readonly kind: string; readonly value: Sortable } {
  if (typeof key === "string") return { kind: "text", value: key };
  if (typeof key === "bigint" || (typeof key === "number" && !Number.isNaN(key))) return { kind: "number", value: key };
  if (key instanceof UnsignedInt) return { kind: "number", value: key.valueOf() };
  if (typeof key === "boolean") return { kind: "boolean", value: Number(key) };
  if (key instanceof Date) return { kind: "timestamp", value: key.getTime() };
  if (key instanceof Duration) return { kind: "duration", value: key.valueOf() };
  throw new Refused("only numbers, texts, booleans, timestamps and durations can be sorted");
}

/** A text that is equal for values that CEL's `==` calls equal: `1` and `1.0`, objects with their keys in any order. */
function valueKey(value: unknown): string {
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
    case "bigint":
      return String(value);
    case "boolean":
      return String(value);
    case "object":
      return value === null ? "null" : keyOfObject(value);
    default:
      throw new Refused("this value cannot be compared");
  }
}

function keyOfObject(value: object): string {
  if (Array.isArray(value)) return `[${value.map(valueKey).join(",")}]`;
  if (value instanceof Date) return `t${value.getTime()}`;
  if (value instanceof Duration) return `d${value.valueOf()}`;
  if (value instanceof UnsignedInt) return String(value.valueOf());
  if (value instanceof Uint8Array) return `b${Buffer.from(value).toString("base64")}`;
  const entries = fieldsOf(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${valueKey(each)}`).join(",")}}`;
}
