import { CREDENTIAL_PREFIXES, type ports } from "@portico/core";
import * as v from "valibot";

/** Longer texts are no tokens. Ids of nodes inside `map` and `loop` are at most about 700 characters. */
const MOST_CHARACTERS = 4096;

/** A node of a run that waits for an answer from outside, and the end of the token. */
interface WaitingNode {
  readonly runId: string;
  /** With its place inside `map` and `loop`. */
  readonly nodeId: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** A gate of a run that a link opens. */
export type LinkedGate = WaitingNode;

/** An attempt of a `callback` node that waits for its event. */
export interface AwaitedCallback extends WaitingNode {
  readonly attempt: number;
}

/** Issues and reads the tokens of one kind. */
export interface RunTokens<T> {
  /** Throws SigningUnavailable. */
  issue(named: T): Promise<string>;
  /**
   * Reads a token; undefined if this instance did not sign it for this purpose. The caller must check whether it has expired. Throws
   * SigningUnavailable.
   */
  read(token: string): Promise<T | undefined>;
}

const time = v.pipe(v.number(), v.safeInteger());
const attempt = v.pipe(v.number(), v.safeInteger());

/** The tokens of approval links (open points 14). */
export function createApprovalTokens(signing: ports.Signing): RunTokens<LinkedGate> {
  return createRunTokens(signing, {
    ...{
      prefix: CREDENTIAL_PREFIXES.approvalLink,
      purpose: "approval-link",
      payload: v.strictTuple([v.string(), v.string(), time]),
    },
    toParts: ({ runId, nodeId, expiresAt }: LinkedGate) => [runId, nodeId, expiresAt] as const,
    fromParts: ([runId, nodeId, expiresAt]) => ({ runId, nodeId, expiresAt }),
  });
}

/** The tokens of callback addresses. Each attempt of a node has its own. */
export function createCallbackTokens(signing: ports.Signing): RunTokens<AwaitedCallback> {
  return createRunTokens(signing, {
    ...{
      prefix: CREDENTIAL_PREFIXES.callback,
      purpose: "callback",
      payload: v.strictTuple([v.string(), v.string(), attempt, time]),
    },
    toParts: ({ runId, nodeId, attempt, expiresAt }: AwaitedCallback) => [runId, nodeId, attempt, expiresAt] as const,
    fromParts: ([runId, nodeId, attempt, expiresAt]) => ({ runId, nodeId, attempt, expiresAt }),
  });
}

/**
 * Tokens that name one waiting node of one run, and that the instance signs. The same node has the same token for as long as the instance has
 * its key, so no store holds tokens. The answer from outside uses the token up.
 */
function createRunTokens<T, P extends readonly unknown[]>(
  signing: ports.Signing,
  kind: {
    readonly prefix: string;
    /** Of the signature: a token of one purpose is invalid for all others. */
    readonly purpose: string;
    readonly payload: v.GenericSchema<unknown, P>;
    toParts(named: T): P;
    fromParts(parts: P): T;
  },
): RunTokens<T> {
  const { prefix, purpose, payload } = kind;
  return {
    async issue(named) {
      const encoded = Buffer.from(JSON.stringify(kind.toParts(named))).toString("base64url");
      return `${prefix}${encoded}.${await signing.sign(purpose, encoded)}`;
    },
    async read(token) {
      const isToken = token.startsWith(prefix) && token.length <= MOST_CHARACTERS;
      const [encoded = "", signature = "", ...more] = isToken ? token.slice(prefix.length).split(".") : [];
      if (more.length > 0 || !(await signing.verify(purpose, encoded, signature))) return undefined;
      return kind.fromParts(v.parse(payload, JSON.parse(Buffer.from(encoded, "base64url").toString())));
    },
  };
}
