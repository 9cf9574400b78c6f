import { hasMoreLevels, ports } from "@portico/core";
import type { Mask } from "../secrecy/mask.ts";

/** A failed answer as it is stored and shown: without secrets, and without a body that is too long or no JSON. */
export function keptAnswer(answer: ports.FailedAnswer | undefined, mask: Mask): ports.FailedAnswer | undefined {
  if (!answer) return undefined;
  const { status } = answer;
  const body = boundedBody(answer.body);
  return body === undefined ? { status } : { status, body: mask(body) };
}

function boundedBody(body: unknown): unknown {
  if (hasMoreLevels(body, LEVELS)) return undefined;
  const text = JSON.stringify(body) as string | undefined;
  return text === undefined || Buffer.byteLength(text) > ports.FAILED_BODY_BYTES ? undefined : (JSON.parse(text) as unknown);
}

const LEVELS = 100;
