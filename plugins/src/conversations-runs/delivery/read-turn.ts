import { isStoreAway, type ports } from "@portico/core";
import { REPLAY_PAUSE_MS, WATCH_LOOKS, WATCH_MS, WATCH_WAITING_MS } from "../limits.ts";
import { type ClientRequest, isOpenRequest } from "../requests/client-requests.ts";
import { eventsOf } from "../turns/transcript.ts";
import { type TurnEvent, transcriptStream } from "../turns/turn.ts";
import { isEnd, isMissing } from "./missing.ts";

/** The turn of a submission, for a reader that has some of its events. */
export interface ReadTurn {
  /** Undefined if the reader can see no such turn. */
  readonly find: () => Promise<ClientRequest | undefined>;
  /** How many of its events the reader has. */
  readonly count: number;
}

/**
 * The events of a turn that the reader does not have, up to its end, as they are written: each process can read them, so a turn costs nothing more
 * where it executes, and no event is lost. They come a moment later than where the turn executes. Waits while stores are away. Returns why the turn
 * has no end to be read; undefined after its end. Throws the signal's reason.
 */
export async function* readTurn(
  { log, clock }: { readonly log: ports.EventLog; readonly clock: ports.Clock },
  { find, count }: ReadTurn,
  signal: AbortSignal,
): AsyncGenerator<TurnEvent, "not_found" | "output_removed" | undefined> {
  let from = 1;
  let request: ClientRequest | undefined;
  for (let silent = WATCH_LOOKS; ; silent++) {
    try {
      const before = from;
      const isLook = silent >= WATCH_LOOKS || request?.waits !== undefined;
      if (isLook) request = (await find()) ?? (request && { ...request, state: "ended" });
      signal.throwIfAborted();
      if (!request) return "not_found";
      // Read before the output: an end that is written between the two is told.
      const isOver = isLook && !isOpenRequest(request);
      for await (const entry of log.read(transcriptStream(request.turnId), { from, signal })) {
        for (const event of eventsOf(entry).filter((each) => isMissing(each, count))) {
          yield event;
          if (isEnd(event)) return undefined;
        }
        from = entry.sequence + 1;
      }
      // The output of a turn is removed some time after its end. Then there is no end to wait for.
      if (isOver) return "output_removed";
      if (from > before || isLook) silent = 0;
      await clock.sleep(request.waits === undefined ? WATCH_MS : WATCH_WAITING_MS, signal);
    } catch (error) {
      if (signal.aborted || !isStoreAway(error)) throw error;
      await clock.sleep(REPLAY_PAUSE_MS, signal);
    }
  }
}
