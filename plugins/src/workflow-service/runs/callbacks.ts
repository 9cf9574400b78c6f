import type { ports } from "@portico/core";
import type { Answers } from "./answers.ts";
import { workName } from "./run-id.ts";

/** The event that a callback received. */
export interface CallbackEvent {
  readonly body: unknown;
  /** ISO 8601. */
  readonly at: string;
  /** It was sent again, and its run was woken up again. */
  readonly isRepeated?: true | undefined;
}

/** Why a callback takes no event any more. */
export interface CallbackClosed {
  readonly error: { readonly code: string; readonly message: string; readonly isFinal: boolean };
  /** ISO 8601. */
  readonly at: string;
}

/** The end of the wait of a callback. */
export type CallbackEnd = CallbackEvent | CallbackClosed;

export type Callbacks = ReturnType<typeof createCallbacks>;

/**
 * The ends of callbacks. An event and the end of the wait compete: the first of them counts, so an accepted event is never lost. Functions throw
 * RecordsUnavailable and SealingUnavailable.
 */
export function createCallbacks(answers: Answers) {
  return {
    find: (runId: string, signal: string): Promise<CallbackEnd | undefined> => answers.find(runId, signal),
    /** Takes the event, and stores it encrypted. Returns the end that counts if the callback had ended before. */
    receive: (
      runId: string,
      signal: string,
      { body, at }: CallbackEvent,
      audited?: { readonly audit: ports.Audit; readonly who: ports.AuditActor; readonly nodeId: string },
    ): Promise<CallbackEnd | undefined> =>
      answers.give<CallbackEnd>(runId, signal, {
        ...{ open: { at }, given: { body } },
        // Services may repeat what they were sent: the address, and secrets that only the run knows.
        sensitive: [["body"]],
        ...(audited && {
          audited: {
            ...{ audit: audited.audit, who: audited.who },
            ...{ action: "callback.receive", object: `${runId}/${audited.nodeId}` },
          },
        }),
      }),
    /** Notes that the run was woken up again. */
    noteRepeated: (runId: string, signal: string): Promise<void> => answers.note(runId, signal, { isRepeated: true }),
    /** Closes the callback. Returns the end that counts: this one, or an event that came before. */
    close: async (runId: string, signal: string, closed: CallbackClosed): Promise<CallbackEnd> =>
      (await answers.give<CallbackEnd>(runId, signal, { open: closed, given: {} })) ?? closed,
  };
}

/** The code with which the wait of a node ends that is cancelled. */
export const CALLBACK_CANCELLED = "cancelled";

/** Whether the end is an event. */
export function isEvent(end: CallbackEnd): end is CallbackEvent {
  return !("error" in end);
}

/** The signal that wakes the run up that waits in an attempt of a node. */
export function callbackSignal(nodeId: string, attempt: number): string {
  return workName(nodeId, `callback #${attempt}`);
}
