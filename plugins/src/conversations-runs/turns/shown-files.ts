import { buffer } from "node:stream/consumers";
import type { ports } from "@portico/core";
import { SHOWN_BYTES_OF_TURN, SHOWN_MEDIA_BYTES, SHOWN_WAIT_MS } from "../limits.ts";
import type { StoredPart, Turn, TurnFile } from "./turn.ts";

/** The stored form of the user's text and files. */
export function storedParts({ prompt, media = [], files = [] }: Pick<Turn, "prompt" | "media" | "files">): readonly StoredPart[] {
  return [
    ...(prompt === "" ? [] : [{ type: "text" as const, text: prompt }]),
    ...media.map((file) => ({ type: "media_ref" as const, ...file })),
    ...files.map((file) => ({ type: "file_ref" as const, ...file })),
  ];
}

/** Puts what a model is to see in the place of references to it. */
export interface ShownFiles {
  /** The messages of a turn's history, oldest first, and what the user says now: the newest media are shown, as many as fit. */
  show(messages: readonly (readonly StoredPart[])[], signal: AbortSignal): Promise<readonly (readonly ports.MessagePart[])[]>;
}

/**
 * What a user may read, shown to a turn of this user while there is room for it. What is gone, too much, or out of reach becomes a note.
 */
export function createShownFiles(given: {
  readonly files: ports.UserFiles | undefined;
  readonly userId: string;
  readonly room: TurnRoom;
}): ShownFiles {
  const { files, userId, room } = given;

  const load = async (file: TurnFile, signal: AbortSignal): Promise<ports.MessagePart> => {
    try {
      const found = await files?.media(userId, file.reference);
      // Room was taken for what it was.
      if (!found || found.size > file.size) return note(`${describe(file)}: no longer exists`);
      const bytes = await buffer(await found.open(signal));
      return { type: "media", mediaType: file.mimeType, name: file.name, data: bytes.toString("base64") };
    } catch {
      signal.throwIfAborted();
      return note(`${describe(file)}: cannot be read now`);
    }
  };

  return {
    async show(messages, signal) {
      const chosen = newestThatFit(messages, Math.min(SHOWN_MEDIA_BYTES, room.most));
      const bytes = chosen.values().reduce((sum, { size }) => sum + size, 0);
      const hasRoom = await room.wait(bytes, signal);
      const shown = async (part: StoredPart): Promise<ports.MessagePart> => {
        if (part.type === "file_ref") return note(`${describe(part)}: ReadAttachment reads it as ${part.reference}`);
        if (part.type === "summary") return { type: "summary", text: part.text };
        if (part.type !== "media_ref") return part;
        if (!chosen.has(part)) return note(`${describe(part)}: too large to be shown with the rest`);
        return hasRoom ? load(part, signal) : note(`${describe(part)}: too much is being shown at once, it cannot be shown now`);
      };
      const all: ports.MessagePart[][] = [];
      for (const parts of messages) {
        const own: ports.MessagePart[] = [];
        // One after another: each is read whole.
        for (const part of parts) own.push(await shown(part));
        all.push(own);
      }
      return all;
    },
  };
}

/** Media that a turn is shown: of the newest message first, and each that still fits. */
function newestThatFit(messages: readonly (readonly StoredPart[])[], bytes: number): ReadonlySet<TurnFile> {
  const chosen = new Set<TurnFile>();
  let left = bytes;
  for (const part of messages.toReversed().flat()) {
    if (part.type !== "media_ref" || part.size > left) continue;
    left -= part.size;
    chosen.add(part);
  }
  return chosen;
}

function note(text: string): ports.MessagePart {
  return { type: "text", text: `[${text}]` };
}

function describe({ name, mimeType, size }: TurnFile): string {
  return `File ${JSON.stringify(name)}, ${mimeType}, ${size} bytes`;
}

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
