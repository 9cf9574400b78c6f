import { CREDENTIAL_PREFIXES, type ports, withoutEnd } from "@portico/core";
import * as v from "valibot";

const PREFIX = CREDENTIAL_PREFIXES.approvalLink;
const PURPOSE = "approval-link";
/** Longer texts are no tokens. Ids of nodes inside `map` and `loop` are at most about 700 characters. */
const MOST_CHARACTERS = 4096;

/** A gate of a run that a link opens, and the end of the link. */
export interface LinkedGate {
  readonly runId: string;
  /** With its place inside `map` and `loop`. */
  readonly nodeId: string;
  /** Milliseconds since 1970. */
  readonly expiresAt: number;
}

/** Issues and reads the tokens of approval links. */
export type ApprovalLinks = ReturnType<typeof createApprovalLinks>;

const payload = v.strictTuple([v.string(), v.string(), v.pipe(v.number(), v.safeInteger())]);

/**
 * Tokens of approval links (open points 14). A token names one gate of one run, and the instance signs it. The same gate has the same token
 * for as long as the instance has its key, so no store holds tokens. The decision of the gate uses the token up. Functions throw
 * SigningUnavailable.
 */
export function createApprovalLinks({ signing }: { readonly signing: ports.Signing }) {
  return {
    async issue({ runId, nodeId, expiresAt }: LinkedGate): Promise<string> {
      const encoded = Buffer.from(JSON.stringify([runId, nodeId, expiresAt])).toString("base64url");
      return `${PREFIX}${encoded}.${await signing.sign(PURPOSE, encoded)}`;
    },
    /** Reads a token; undefined if this instance did not sign it. The caller must check whether it has expired. */
    async read(token: string): Promise<LinkedGate | undefined> {
      const isLink = token.startsWith(PREFIX) && token.length <= MOST_CHARACTERS;
      const [encoded = "", signature = "", ...more] = isLink ? token.slice(PREFIX.length).split(".") : [];
      if (more.length > 0 || !(await signing.verify(PURPOSE, encoded, signature))) return undefined;
      const [runId, nodeId, expiresAt] = v.parse(payload, JSON.parse(Buffer.from(encoded, "base64url").toString()));
      return { runId, nodeId, expiresAt };
    },
  };
}

/** The address of a link. */
export function approvalUrl(publicUrl: string, token: string): string {
  return `${withoutEnd(publicUrl, "/")}/approve/${token}`;
}
