import { ports } from "@portico/core";
import { errorBody } from "@portico/core/model-protocols";
import { WholeAnswer } from "./whole-answer.ts";

/** Thrown for a call that a limit of Portico's own settings stops. The provider answers it with status 429. */
export class LimitReached extends ports.ModelUnreachable {
  readonly retryAfterMs: number;

  constructor(message: string, retryAfterMs: number) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** The answer to a call that a limit stops, in the provider's protocol, as the vendor itself would limit it. */
export function limitAnswer(protocol: ports.ModelProtocol, { message, retryAfterMs }: LimitReached): ports.ModelAnswer {
  const body = Buffer.from(JSON.stringify(errorBody(protocol, { kind: "rate-limit", message })));
  const headers = {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(body.length),
    "retry-after": String(Math.max(1, Math.ceil(retryAfterMs / 1_000))),
  };
  return new WholeAnswer(429, headers, body);
}
