import { createHash } from "node:crypto";
import { hasMoreLevels, ports, type RequestHead } from "@portico/core";
import { idempotencyKeyOf, undefinedAtConflict } from "@portico/core/kit";
import canonicalize from "canonicalize";
import { workflowErrors } from "../contracts/errors.ts";
import { IDEMPOTENCY_MS } from "../contracts/limits.ts";

/** The run that was started with a key. */
interface KeptKey {
  readonly runId: string;
  /** The signature of the digest of the body. Without the instance's key, secrets of the body cannot be guessed from it. */
  readonly body: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

/** A call that starts a run, and what its key is scoped to. */
interface KeyedCall {
  readonly head: Pick<RequestHead, "header">;
  readonly workflowId: string;
  /** The caller, as far as its credential tells. */
  readonly caller: readonly (string | undefined)[];
  readonly parameters: Readonly<Record<string, unknown>>;
}

/** A call with the header `Idempotency-Key`. */
export interface KeyedStart {
  /** The run that a call with this key has started. Throws `idempotency_key_reused` if that call had another body. */
  known(): Promise<{ readonly runId: string } | undefined>;
  /** Keeps the key for this run, in the commit of its acceptance. A RecordConflict if another call was quicker: ask `known` again. */
  write(runId: string): ports.Write;
}

export type KeyedStarts = ReturnType<typeof createKeyedStarts>;

const PURPOSE = "idempotency-key";
const SWEPT_AT_ONCE = 200;

/** The runs that were started with an `Idempotency-Key` (open points 15). Functions throw RecordsUnavailable and SigningUnavailable. */
export function createKeyedStarts({
  records,
  signing,
  clock,
}: {
  readonly records: ports.Records;
  readonly signing: ports.Signing;
  readonly clock: ports.Clock;
}) {
  const keys = records.collection<KeptKey>({ name: "workflow-idempotency-keys", indexes: { by_end: ["until"] } });
  return {
    /** Undefined without the header. Throws `idempotency_key_invalid`. */
    async open({ head, workflowId, caller, parameters }: KeyedCall): Promise<KeyedStart | undefined> {
      const sent = idempotencyKeyOf(head);
      if (sent === undefined) return undefined;
      if (sent === "invalid") throw workflowErrors.idempotency_key_invalid();
      // Such parameters are refused, and start nothing.
      if (hasMoreLevels(parameters, ports.NODE_OUTPUT_LEVELS)) return undefined;
      const id = digestOf(JSON.stringify([workflowId, ...caller.map((part) => part ?? null), sent.key]));
      const digest = digestOf(canonicalize(parameters) ?? "");
      const body = await signing.sign(PURPOSE, digest);
      let expected: ports.Expected = "absent";
      return {
        async known() {
          const found = await keys.get(id);
          expected = found?.version ?? "absent";
          if (!found || found.value.until <= clock.now()) return undefined;
          if (!(await signing.verify(PURPOSE, digest, found.value.body))) throw workflowErrors.idempotency_key_reused();
          return { runId: found.value.runId };
        },
        write: (runId) => keys.write.put(id, { runId, body, until: clock.now() + IDEMPOTENCY_MS }, expected),
      };
    },
    /** Removes the keys whose time has passed. */
    async sweep(closing: AbortSignal): Promise<void> {
      const order = { by: "until", direction: "ascending" } as const;
      for (let isMore = true; isMore && !closing.aborted;) {
        const { items } = await keys.query({ order, limit: SWEPT_AT_ONCE });
        const old = items.filter(({ value }) => value.until <= clock.now());
        // A conflict: the key was just used again.
        for (const { id, version } of old) await keys.remove(id, version).catch(undefinedAtConflict);
        isMore = old.length === SWEPT_AT_ONCE;
      }
    },
  };
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
