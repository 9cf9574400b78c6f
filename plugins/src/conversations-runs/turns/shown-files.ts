import { buffer } from "node:stream/consumers";
import type { ports } from "@portico/core";
import type { StoredPart } from "../conversations/conversations.ts";
import { SHOWN_MEDIA_BYTES } from "../limits.ts";
import type { Turn, TurnFile } from "./turn.ts";

/** What a conversation keeps of the user's words and files. */
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

/** What a user may read, shown to this user's turns. What is gone, too much, or out of reach becomes a note. */
export function createShownFiles(files: ports.UserFiles | undefined, userId: string): ShownFiles {
  return {
    async show(messages, signal) {
      let left = SHOWN_MEDIA_BYTES;
      const load = async (file: TurnFile): Promise<ports.MessagePart> => {
        if (file.size > left) return note(`${describe(file)}: too large to be shown with the rest`);
        left -= file.size;
        try {
          const found = await files?.media(userId, file.reference);
          if (!found) return note(`${describe(file)}: not there any more`);
          const bytes = await buffer(await found.open(signal));
          return { type: "media", mediaType: file.mimeType, name: file.name, data: bytes.toString("base64") };
        } catch {
          signal.throwIfAborted();
          return note(`${describe(file)}: cannot be read now`);
        }
      };
      const shown: (readonly ports.MessagePart[])[] = [];
      for (const parts of messages.toReversed()) {
        const own: ports.MessagePart[] = [];
        for (const part of parts) {
          if (part.type === "media_ref") own.push(await load(part));
          else if (part.type === "file_ref") own.push(note(`${describe(part)}: ReadAttachment reads it as ${part.reference}`));
          else own.push(part);
        }
        shown.unshift(own);
      }
      return shown;
    },
  };
}

function note(text: string): ports.MessagePart {
  return { type: "text", text: `[${text}]` };
}

function describe({ name, mimeType, size }: TurnFile): string {
  return `File ${JSON.stringify(name)}, ${mimeType}, ${size} bytes`;
}
