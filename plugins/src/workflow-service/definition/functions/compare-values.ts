import { Duration, UnsignedInt } from "@marcbachmann/cel-js/evaluator";
import { Refused } from "../refused.ts";
import type { Spend } from "./library-function.ts";

type Sortable = string | number | bigint;

/** The same elements, ordered by their keys. Equal keys keep their order. Throws Refused if the keys cannot be compared with each other. */
export function sortedBy(elements: readonly unknown[], keys: readonly unknown[], spend: Spend): unknown[] {
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
