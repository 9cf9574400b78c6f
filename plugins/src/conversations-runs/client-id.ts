import { maxCharacters } from "@portico/core/contract";
import * as v from "valibot";
import { CLIENT_ID_LENGTH } from "./limits.ts";

/** An ID that a client made (specification 4.6). U+0000 and lone surrogates have no place in a store. */
export const clientId = v.pipe(
  v.string(),
  v.nonEmpty(),
  maxCharacters(CLIENT_ID_LENGTH),
  v.check((id) => id.isWellFormed() && !id.includes("\0"), "well-formed text"),
);
