import { parseJson } from "@portico/core";
import * as v from "valibot";

/** What a client sends. */
export type ClientFrame = v.InferOutput<typeof clientFrame>;

/** What the service sends. */
export type ServiceFrame =
  | {
      readonly type: "welcome";
      readonly id: string;
      readonly place?: string;
      readonly isWhole?: boolean;
      readonly pingIntervalMs: number;
      readonly pingTimeoutMs: number;
    }
  | { readonly type: "refused"; readonly code: string; readonly message: string }
  | { readonly type: "event"; readonly event: string; readonly payload?: unknown; readonly place?: string | undefined }
  | { readonly type: "ack"; readonly ack: number }
  | { readonly type: "ping" };

/** Why the service closes a WebSocket: code and reason of its close frame. */
export const CLOSING = {
  stopped: { code: 1001, reason: "service_stopped" },
  binary: { code: 1003, reason: "binary_frame" },
  invalid: { code: 1007, reason: "invalid_frame" },
  tooLarge: { code: 1009, reason: "frame_too_large" },
  failed: { code: 1011, reason: "internal_error" },
  refused: { code: 4403, reason: "refused" },
  helloTimeout: { code: 4408, reason: "hello_timeout" },
  dropped: { code: 4410, reason: "dropped" },
} as const;

export type Closing = (typeof CLOSING)[keyof typeof CLOSING];

const text = v.string();
const clientFrame = v.variant("type", [
  v.strictObject({ type: v.literal("hello"), hello: v.unknown(), last: v.optional(text) }),
  v.strictObject({
    type: v.literal("event"),
    event: text,
    payload: v.optional(v.unknown()),
    ack: v.optional(v.pipe(v.number(), v.safeInteger())),
  }),
  v.strictObject({ type: v.literal("pong") }),
]);

/** Reads one frame of a client. Undefined for text that is not JSON or not a frame. */
export function readFrame(json: string): ClientFrame | undefined {
  try {
    const parsed = v.safeParse(clientFrame, parseJson(json));
    return parsed.success ? parsed.output : undefined;
  } catch {
    return undefined;
  }
}
