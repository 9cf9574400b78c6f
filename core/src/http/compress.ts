import { pipeline } from "node:stream";
import { promisify } from "node:util";
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from "node:zlib";
import Negotiator from "negotiator";
import type { Pieces } from "./pieces.ts";
import type { RequestHead } from "../grammar/contract.ts";

/** The content codings of answers. */
export const CODINGS = ["br", "gzip"] as const;

export type Coding = (typeof CODINGS)[number];

/** Levels at which both codings take about as long as reading the stored data. */
const GZIP = { level: 5 };
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT } };

/** Compresses a whole text, in a thread of the pool. */
export function compress(text: Buffer, coding: Coding): Promise<Buffer<ArrayBuffer>> {
  return coding === "br" ? promisify(brotliCompress)(text, BROTLI) : promisify(gzip)(text, GZIP);
}

/** The same pieces, compressed in threads of the pool. A few pieces are made before the reader takes them. */
export function compressPieces(pieces: Pieces, coding: Coding): Pieces {
  const packer = coding === "br" ? createBrotliCompress(BROTLI) : createGzip(GZIP);
  async function* made(): AsyncGenerator<string | Uint8Array, void> {
    try {
      for (let piece = await pieces.next(); piece !== undefined; piece = await pieces.next()) yield piece;
    } finally {
      await pieces.leave();
    }
  }
  const packed = packer[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  // Errors of the source reach the reader of `packed`.
  pipeline(made(), packer, () => {});
  return {
    async next() {
      const step = await packed.next();
      return step.done ? undefined : step.value;
    },
    async leave() {
      packer.destroy();
      await pieces.leave();
    },
  };
}

/**
 * The content coding of an answer, by the caller's `Accept-Encoding` and its order: one of `codings`. Undefined if the answer is sent as it is,
 * which is always possible.
 */
export function acceptedCoding<Coding extends string>(
  head: Pick<RequestHead, "header">,
  codings: readonly Coding[],
): Coding | undefined {
  const accepted = head.header("accept-encoding");
  if (accepted === undefined) return undefined;
  const best = new Negotiator({ headers: { "accept-encoding": accepted } }).encoding([...codings, "identity"]);
  return codings.find((coding) => coding === best);
}
