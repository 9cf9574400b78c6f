import type { Readable, Writable } from "node:stream";
import type { Clock } from "../ports/clock.ts";
import type { Exchange, RequestHead } from "../grammar/contract.ts";
import type { Pieces } from "./pieces.ts";

export type AnswerHeaders = Readonly<Record<string, string | readonly string[]>>;

/**
 * One request, and the way to answer it. There are two kinds of doors: one for the request and response of Node, one for those of
 * fetch. Doors know streams and framing, and no contracts: `answer` alone decides what is answered.
 */
export interface Door {
  readonly head: RequestHead;
  /** The path has an escape that cannot be decoded. Its parameters are then not decoded. */
  readonly isMalformed: boolean;
  readonly scheme: "http" | "https";
  /** All headers by their lowercase names. */
  readonly headers: Exchange["headers"];
  /** The request as an object of fetch. */
  readonly request: Request;
  /** Undefined where a request has no body. A Node request always has one, which may be empty. */
  readonly body: Readable | undefined;
  /** Aborts when the caller leaves before its answer is complete, and with `abort`. */
  readonly signal: AbortSignal;
  /** The caller has left. */
  readonly isLeft: boolean;
  /** The head of an answer was sent. */
  readonly isAnswered: boolean;
  /**
   * `over` is called once, when the answer is complete, was cut, or has lost its reader. It gets the status that was sent, or 499
   * if none was.
   */
  onOver(over: (status: number) => void): void;
  /** Send a whole answer. The answer to a HEAD request is only the head. */
  send(status: number, headers: AnswerHeaders, body?: string | Uint8Array<ArrayBuffer>): void;
  /**
   * Send the pieces at the reader's pace. Resolves when the last piece is sent or the reader has left. Rejects as the pieces do.
   */
  sendPieces(status: number, headers: AnswerHeaders, pieces: Pieces): Promise<void>;
  /** Send the head. The caller writes the body to the returned stream and ends it. */
  open(status: number, headers: AnswerHeaders): Writable;
  /** Send a Response that a handler has made, with these additional headers. */
  forward(response: Response, headers: AnswerHeaders): Promise<void>;
  /** End an answer that was sent in part, or cannot be sent, so that its reader does not take it for complete. */
  cut(error: unknown): void;
  /** The caller has left, so no answer is possible. */
  giveUp(): void;
  abort(reason: DOMException): void;
  /** Handle the part of the request's body that no handler reads. */
  dropBody(clock: Clock): void;
}

/** Logged status of a caller who left before an answer. Never sent. */
export const CALLER_LEFT = 499;
