import type { RequestHead } from "../grammar/contract.ts";

/** The validators of a resource, for conditional requests. */
export interface Validators {
  /** With quotes, and with `W/` before them if the tag is weak. */
  readonly etag?: string | undefined;
  /** Milliseconds since 1970. Compared in whole seconds, as in HTTP. */
  readonly lastModified?: number | undefined;
}

/** The outcome of a request's conditions: answer it, 304, or 412. */
export type ConditionOutcome = "proceed" | "not_modified" | "precondition_failed";

/**
 * Evaluates the conditions of a request for an existing resource, in the order of RFC 9110, 13.2.2: `If-Match` or
 * `If-Unmodified-Since`, then `If-None-Match` or `If-Modified-Since`. `not_modified` (304) is only for GET and HEAD. An invalid
 * date is ignored.
 */
export function checkConditions(head: Pick<RequestHead, "method" | "header">, validators: Validators): ConditionOutcome {
  const { etag } = validators;
  const isRead = head.method === "GET" || head.method === "HEAD";
  const ifMatch = head.header("if-match");
  if (ifMatch !== undefined) {
    if (!listsTag(ifMatch, etag, isStrongMatch)) return "precondition_failed";
  } else if (isModifiedSince(head.header("if-unmodified-since"), validators) === true) {
    return "precondition_failed";
  }
  const ifNoneMatch = head.header("if-none-match");
  if (ifNoneMatch !== undefined) {
    if (!listsTag(ifNoneMatch, etag, isWeakMatch)) return "proceed";
    return isRead ? "not_modified" : "precondition_failed";
  }
  return isRead && isModifiedSince(head.header("if-modified-since"), validators) === false ? "not_modified" : "proceed";
}

/** The outcome of the conditions of a request that writes a resource: write it, 428, or 412. */
export type ReplacementOutcome = "proceed" | "precondition_required" | "precondition_failed";

/**
 * Evaluates the conditions of a request that must name the state that it replaces (RFC 6585, 3): `If-Match` with a tag of the current
 * resource, or `If-None-Match: *` for a resource that does not exist yet. `etag` is that of the current resource; undefined if it does not
 * exist.
 */
export function checkReplacement(head: Pick<RequestHead, "method" | "header">, etag: string | undefined): ReplacementOutcome {
  const [ifMatch, ifNoneMatch] = [head.header("if-match"), head.header("if-none-match")];
  if (ifMatch === undefined && ifNoneMatch?.trim() !== "*") return "precondition_required";
  const isMet = etag === undefined ? ifMatch === undefined : checkConditions(head, { etag }) === "proceed";
  return isMet ? "proceed" : "precondition_failed";
}

/**
 * Whether `If-Range` allows a `Range` (RFC 9110, 13.1.5): it does if it is absent, or if it names exactly the current resource,
 * by a strong tag or by the date. Otherwise the whole resource must be sent.
 */
export function allowsRange(head: Pick<RequestHead, "header">, { etag, lastModified }: Validators): boolean {
  const ifRange = head.header("if-range")?.trim();
  if (ifRange === undefined) return true;
  if (ONE_TAG.test(ifRange)) return etag !== undefined && isStrongMatch(ifRange, etag);
  const date = parseDate(ifRange);
  return date !== undefined && lastModified !== undefined && date === wholeSeconds(lastModified);
}

/** Parses a date of `Last-Modified` and similar headers, as milliseconds since 1970. */
export function httpDate(at: number): string {
  return new Date(at).toUTCString();
}

const TAG = String.raw`(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"`;
const ONE_TAG = new RegExp(`^${TAG}$`);
const TAG_LIST = new RegExp(`^[ \\t,]*${TAG}(?:[ \\t]*,[ \\t,]*${TAG})*[ \\t,]*$`);
/** The current date format, and the two obsolete ones (RFC 9110, 5.6.7). */
const DATES = [
  /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{5,8}, \d\d-[A-Z][a-z]{2}-\d\d \d\d:\d\d:\d\d GMT$/,
  /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}$/,
];

/** Whether a list of tags contains the current tag. `*` matches always, also a resource without a tag. */
function listsTag(list: string, etag: string | undefined, isMatch: (one: string, other: string) => boolean): boolean {
  if (list.trim() === "*") return true;
  if (etag === undefined || !TAG_LIST.test(list)) return false;
  return list.match(new RegExp(TAG, "g"))!.some((one) => isMatch(one, etag));
}

function isStrongMatch(one: string, other: string): boolean {
  return one === other && !one.startsWith("W/");
}

function isWeakMatch(one: string, other: string): boolean {
  return one.replace(/^W\//, "") === other.replace(/^W\//, "");
}

/** Undefined if one of the two dates is unknown. */
function isModifiedSince(header: string | undefined, { lastModified }: Validators): boolean | undefined {
  const date = header === undefined ? undefined : parseDate(header.trim());
  return date === undefined || lastModified === undefined ? undefined : wholeSeconds(lastModified) > date;
}

function parseDate(text: string): number | undefined {
  if (!DATES.some((shape) => shape.test(text))) return undefined;
  const at = Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);
  return Number.isNaN(at) ? undefined : at;
}

function wholeSeconds(at: number): number {
  return Math.floor(at / 1_000) * 1_000;
}

/** Both ends are inclusive. */
export interface ByteRange {
  readonly start: number;
  readonly end: number;
}

/**
 * The part of `size` bytes that a `Range` header asks for: one range, from one byte to another, from one byte to the end, or the
 * last N bytes. An end past the last byte is the last byte (open points 10). Any other range cannot be satisfied: several ranges,
 * other units, invalid ranges, and every range of an empty file (specification 4.5, rule 8, where HTTP would ignore some of
 * them).
 */
export function readRange(header: string | undefined, size: number): ByteRange | "whole" | "unsatisfiable" {
  if (header === undefined) return "whole";
  const [, from = "", to = ""] = RANGE.exec(header) ?? [];
  if (from === "" && to === "") return "unsatisfiable";
  // A number that is too long to be exact is beyond every file.
  const start = from === "" ? Math.max(size - Number(to), 0) : Number(from);
  const end = from === "" || to === "" ? size - 1 : Math.min(Number(to), size - 1);
  return start > end ? "unsatisfiable" : { start, end };
}

/** Units are case-insensitive (RFC 9110, 14.1). */
const RANGE = /^[ \t]*bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i;
