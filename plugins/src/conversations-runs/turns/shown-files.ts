import { buffer } from "node:stream/consumers";
import type { ports } from "@portico/core";
import type { StoredPart } from "../conversations/conversations.ts";
import { SHOWN_MEDIA_BYTES } from "../limits.ts";
import type { TurnRoom } from "./shown-room.ts";
import type { Turn, TurnFile } from "./turn.ts";

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
