import { type ports, writeAgain } from "@portico/core";
import type { Debounce, Definition } from "../definition/definition.ts";
import type { WorkflowRuntime } from "../workflow-runtime.ts";
import type { KeyedStart } from "./keyed-starts.ts";
import type { PendingInput } from "./pending-inputs.ts";
import { readParameters, sealParameters, startKeyId } from "./start-runs.ts";

/** A trigger of a workflow with `debounce`. */
export interface DebouncedTrigger {
  readonly definition: Definition;
  readonly debounce: Debounce;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly key: KeyedStart | undefined;
  /** An id for a run that begins now. */
  newRunId(): string;
}

/** What the trigger did. `isKnown`: an earlier call with the same key did it. `joins`: the run waits for triggers since an earlier one. */
export interface Debounced {
  readonly runId: string;
  readonly isKnown?: true;
  readonly joins?: true;
}

/**
 * Accepts a run that waits for further triggers, or gives its parameters to the run that waits already. Durable when it resolves. Throws
 * `invalid_parameters`, and what stores throw.
 */
export async function startDebounced(
  runtime: WorkflowRuntime,
  clock: ports.Clock,
  { definition, debounce, parameters, key, newRunId }: DebouncedTrigger,
): Promise<Debounced> {
  const { pendingInputs, startRun } = runtime;
  const read = await readParameters(runtime, definition, parameters);
  const id = await startKeyId(runtime, debounce.key, { definition, value: read.value });
  return pendingInputs.inTurn(id, () =>
    writeAgain(async () => {
      const known = await key?.known();
      if (known) return { ...known, isKnown: true };
      const found = await pendingInputs.find(id);
      const waits = found && (await isWaiting(found.value));
      const runId = waits ? found.value.runId : newRunId();
      const sealed = await sealParameters(runtime, { runId, definition, read });
      const now = clock.now();
      const firstAt = waits ? found.value.firstAt : now;
      const { stored, fields } = sealed;
      const next: PendingInput = {
        ...{ runId, definition: definition.hash, firstAt },
        dueAt: Math.min(now + debounce.delayMs, firstAt + debounce.maxWaitMs),
        last: { parameters: stored.value, hidden: stored.hidden, fields, slot: read.slot },
      };
      const writes = [...pendingInputs.put(id, next, found), ...(key ? [key.write(runId)] : [])];
      if (waits) {
        await pendingInputs.write(writes);
        return { runId, joins: true };
      }
      await startRun({ definition, parameters, runId, debounce: { id }, read: { ...read, sealed }, writes });
      return { runId };
    }),
  );

  /** A run keeps the definition with which it was accepted. It may be cancelled, while its end is not stored yet. */
  async function isWaiting(pending: PendingInput): Promise<boolean> {
    return pending.definition === definition.hash && (await pendingInputs.goesOn(pending.runId));
  }
}
