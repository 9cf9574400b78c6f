import type { RequestHead } from "../route.ts";

/** What is to be sent now. */
export interface Representation {
  /** Strong, with its quotes. */
  readonly etag: string;
  /** To the second. */
  readonly lastModified: Date;
}

export interface Conditions {
  readonly outcome: "proceed" | "not_modified" | "precondition_failed";
  /** False where `If-Range` names another representation: a `Range` is ignored then. */
  readonly allowsRange: boolean;
}

/** The conditions of a GET or HEAD (RFC 9110, 13.2.2), in their order. A date that is none counts as not given. */
export function evaluateConditions(head: RequestHead, { etag, lastModified }: Representation): Conditions {
  const modified = lastModified.getTime();
  const dateOf = (name: string): number => Date.parse(head.header(name) ?? "");
  const [ifMatch, ifNoneMatch, ifRange] = ["if-match", "if-none-match", "if-range"].map((name) => head.header(name));
  const allowsRange = ifRange === undefined || ifRange === etag || Date.parse(ifRange) === modified;
  const isFailed = ifMatch === undefined ? modified > dateOf("if-unmodified-since") : !names(ifMatch, etag, "strong");
  if (isFailed) return { outcome: "precondition_failed", allowsRange };
  const isKnown = ifNoneMatch === undefined ? modified <= dateOf("if-modified-since") : names(ifNoneMatch, etag, "weak");
  return { outcome: isKnown ? "not_modified" : "proceed", allowsRange };
}

function names(list: string, etag: string, comparison: "strong" | "weak"): boolean {
  if (list.trim() === "*") return true;
  const tags = list.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.some((tag) => tag === etag || (comparison === "weak" && tag === `W/${etag}`));
}
