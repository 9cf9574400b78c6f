import { JsonPieces, type ports } from "@portico/core";
import { managementErrors } from "./errors.ts";
import { DELIVERIES_LIMIT, DELIVERIES_LIMIT_MAXIMUM } from "./limits.ts";

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

type Parameter = string | readonly string[] | undefined;

/** Limit and offset of a page of deliveries (specification 4.3 and 8). Throws `invalid_webhook_management_request`. */
export function readPage(query: { readonly limit?: Parameter; readonly offset?: Parameter }) {
  return {
    limit: readInteger("limit", query.limit ?? `${DELIVERIES_LIMIT}`, { least: 1, most: DELIVERIES_LIMIT_MAXIMUM }),
    offset: readInteger("offset", query.offset ?? "0", { least: 0, most: Number.MAX_SAFE_INTEGER }),
  };
}

function readInteger(
  name: string,
  value: string | readonly string[],
  { least, most }: { readonly least: number; readonly most: number },
) {
  const number = typeof value === "string" && /^[0-9]+$/.test(value) ? Number(value) : Number.NaN;
  if (number >= least && number <= most) return number;
  const expected = most === Number.MAX_SAFE_INTEGER ? `one integer from ${least}` : `one integer from ${least} to ${most}`;
  throw managementErrors.invalid_webhook_management_request(undefined, { [name]: expected });
}
