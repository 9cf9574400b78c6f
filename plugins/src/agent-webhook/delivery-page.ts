import { JsonPieces, type ports } from "@portico/core";

const PIECE_CHARACTERS = 64 * 1024;

/** Streams a page of deliveries (specification 2.6), because two hundred long deliveries are too large for one string in memory. */
export function deliveryPage(
  items: AsyncIterable<ports.Delivery>,
  page: { readonly total: number; readonly limit: number; readonly offset: number },
): JsonPieces {
  return new JsonPieces(
    (async function* () {
      let [text, separator] = [`{"items":[`, ""];
      for await (const item of items) {
        text += separator + JSON.stringify(item);
        separator = ",";
        if (text.length < PIECE_CHARACTERS) continue;
        yield text;
        text = "";
      }
      yield `${text}],${JSON.stringify(page).slice(1)}`;
    })(),
  );
}
