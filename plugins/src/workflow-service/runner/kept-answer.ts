import { hasMoreLevels, ports } from "@portico/core";
import type { RunSecrecy } from "../secrecy/run-secrecy.ts";

/** A failed answer as it is stored and shown: without secrets, and with the beginning of a body that is too long. */
export function keptAnswer(
  answer: ports.FailedAnswer | undefined,
  secrecy: Pick<RunSecrecy, "mask" | "maskBeginning">,
): ports.FailedAnswer | undefined {
  if (!answer) return undefined;
  const { status, body, bodyTruncated } = answer;
  if (hasMoreLevels(body, LEVELS)) return { status };
  // Secrets are masked first: a part of one is not found.
  const masked = bodyTruncated && typeof body === "string" ? secrecy.maskBeginning(body) : secrecy.mask(jsonOf(body));
  if (masked === undefined) return { status };
  if (fits(masked)) return { status, body: masked, ...(bodyTruncated && { bodyTruncated }) };
  return { status, body: beginningOf(typeof masked === "string" ? masked : JSON.stringify(masked)), bodyTruncated: true };
}

const LEVELS = 100;

/** The value as JSON keeps it. */
function jsonOf(value: unknown): unknown {
  const text = JSON.stringify(value) as string | undefined;
  return text === undefined ? undefined : (JSON.parse(text) as unknown);
}

function fits(body: unknown): boolean {
  return Buffer.byteLength(JSON.stringify(body)) <= ports.FAILED_BODY_BYTES;
}

/** As many of the first characters as fit. */
function beginningOf(text: string): string {
  let [fitting, most] = [0, ports.FAILED_BODY_BYTES];
  while (fitting < most) {
    const length = Math.ceil((fitting + most) / 2);
    if (fits(text.slice(0, length))) fitting = length;
    else most = length - 1;
  }
  // Without half a character at its end.
  return text.slice(0, fitting).replace(/[\uD800-\uDBFF]$/, "");
}
