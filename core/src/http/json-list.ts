import { JsonPieces } from "./json-pieces.ts";

const PIECE_CHARACTERS = 64 * 1024;

/**
 * `{"name":[…]}`, page by page, for a `json` route. A long list is never held in memory, and a short one is sent in one piece.
 */
export function jsonList(name: string, pages: AsyncIterable<readonly unknown[]>): JsonPieces {
  return new JsonPieces(
    (async function* () {
      let [text, separator] = [`{"${name}":[`, ""];
      for await (const page of pages) {
        for (const item of page) {
          text += separator + JSON.stringify(item);
          separator = ",";
        }
        if (text.length < PIECE_CHARACTERS) continue;
        yield text;
        text = "";
      }
      yield `${text}]}`;
    })(),
  );
}
