import type { ports } from "@portico/core";
import { SHOWN_BYTES_OF_TURN, SHOWN_WAIT_MS } from "../limits.ts";

/**
 * Limits the memory for files that are shown to models. Turns keep these files in memory until they end. Because many turns execute at the same time,
 * per-turn limits do not bound total memory.
 */
export interface ShownRoom {
  /** What one turn has of it. */
  open(): TurnRoom;
}

export interface TurnRoom {
  /** Most bytes that it can ever have. */
  readonly most: number;
  /** Take room that is there now; false where it is not, or the turn has had its share. */
  take(bytes: number): boolean;
  /**
   * The same, in line for some time; false where none became free in it. Only for the first room of a turn: those that waited for each
   * other's would all wait in vain. Rejects with the signal's reason.
   */
  wait(bytes: number, signal: AbortSignal): Promise<boolean>;
  /** Give all of it back. Nothing more is taken afterwards. */
  close(): void;
}

/** `bytes` is for all turns together. */
export function createShownRoom({ bytes, clock }: { readonly bytes: number; readonly clock: ports.Clock }): ShownRoom {
  let left = bytes;
  /** First in, first out: small requests do not overtake a large one, which would otherwise starve. */
  const line = new Set<{ readonly wanted: number; readonly enter: () => void }>();
  const letIn = () => {
    for (const waiting of line) {
      if (waiting.wanted > left) return;
      line.delete(waiting);
      left -= waiting.wanted;
      waiting.enter();
    }
  };
  const inLine = (wanted: number, signal: AbortSignal): Promise<boolean> =>
    new Promise((resolve, reject) => {
      const leave = () => {
        line.delete(waiting);
        // Those behind may need less.
        letIn();
      };
      const onAbort = () => {
        timer.cancel();
        leave();
        reject(signal.reason);
      };
      const timer = clock.after(SHOWN_WAIT_MS, () => {
        signal.removeEventListener("abort", onAbort);
        leave();
        resolve(false);
      });
      const waiting = {
        wanted,
        enter() {
          timer.cancel();
          signal.removeEventListener("abort", onAbort);
          resolve(true);
        },
      };
      signal.addEventListener("abort", onAbort, { once: true });
      line.add(waiting);
    });

  return {
    open() {
      const most = Math.min(SHOWN_BYTES_OF_TURN, bytes);
      let [held, isOver] = [0, false];
      const mayHave = (wanted: number): boolean => !isOver && held + wanted <= most;
      const room: TurnRoom = {
        most,
        take(wanted) {
          if (!mayHave(wanted) || wanted > left || line.size > 0) return false;
          left -= wanted;
          held += wanted;
          return true;
        },
        async wait(wanted, signal) {
          signal.throwIfAborted();
          if (wanted === 0) return true;
          if (!mayHave(wanted)) return false;
          if (room.take(wanted)) return true;
          if (!(await inLine(wanted, signal))) return false;
          held += wanted;
          // Its turn ended without it.
          if (isOver) room.close();
          return !isOver;
        },
        close() {
          isOver = true;
          left += held;
          held = 0;
          letIn();
        },
      };
      return room;
    },
  };
}
