import { createRequire } from "node:module";
import type { ports } from "@portico/core";
import type { Expression, ExprNode } from "jsonata";
import { IMPURE, impureSentence } from "./impure-functions.ts";

interface SyntaxError {
  readonly position?: number;
  readonly message?: string;
}

const load = createRequire(import.meta.url);

/** The problems of a JSONata expression that can be found without evaluating it. */
export function jsonataFaults(source: string): ports.NodeFault[] {
  // It loads slowly. Services without JSONata do not load it.
  const jsonata = load("jsonata") as (source: string) => Expression;
  try {
    const name = findImpure(jsonata(source).ast());
    return name === undefined ? [] : [{ path: ["jsonata"], message: impureSentence(name) }];
  } catch (error) {
    const { position, message = "the expression cannot be read" } = error as SyntaxError;
    return [{ path: ["jsonata"], message: position === undefined ? message : `${placeOf(source, position)}: ${message}` }];
  }
}

/** Line and column as in editors: both start at 1. */
export function placeOf(source: string, position: number): string {
  const before = source.slice(0, position);
  const line = before.split("\n").length;
  return `line ${line}, column ${position - before.lastIndexOf("\n")}`;
}

function findImpure(node: unknown): string | undefined {
  if (Array.isArray(node)) return firstOf(node);
  if (typeof node !== "object" || node === null) return undefined;
  const { type, value } = node as ExprNode;
  if (type === "variable" && IMPURE.has(value)) return value as string;
  return firstOf(Object.values(node));
}

function firstOf(nodes: readonly unknown[]): string | undefined {
  for (const node of nodes) {
    const found = findImpure(node);
    if (found !== undefined) return found;
  }
  return undefined;
}
