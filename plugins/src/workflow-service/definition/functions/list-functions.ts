import { Refused } from "../refused.ts";
import { chargeForList, chargeForValue } from "./bounded-result.ts";
import { sortedBy } from "./compare-values.ts";
import type { FunctionGroup, Spend } from "./library-function.ts";
import { sortByMacro } from "./sort-by.ts";
import { valueKey } from "./value-key.ts";

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
