import type { ByteRange, ports, RequestHead } from "@portico/core";
import { mediaKey } from "./media.ts";

/** Lets nginx send the bytes of media, with `X-Accel-Redirect`. */
export interface AccelRedirect {
  /** Whether nginx would send exactly this range. If not, the service must send it. */
  canSend(head: RequestHead, range: ByteRange | "whole"): boolean;
  /** Where nginx finds the bytes. Undefined if they are missing. Throws BlobsUnavailable. */
  find(mediaId: string): Promise<{ readonly uri: string; readonly size: number } | undefined>;
}

/** Undefined if the blobs are not files. */
export function createAccelRedirect(blobs: ports.Blobs, prefix: string): AccelRedirect | undefined {
  const locate = blobs.locate?.bind(blobs);
  return (
    locate && {
      canSend,
      async find(mediaId) {
        const found = await locate(mediaKey(mediaId));
        return found && { uri: `${prefix}/${found.path}`, size: found.size };
      },
    }
  );
}

/**
 * nginx compares `If-Match` and `If-Unmodified-Since` with tags and times of its own. It refuses some ranges that are valid here, and it would
 * have to decide again whether `If-Range` turns a range into the whole.
 */
function canSend(head: RequestHead, range: ByteRange | "whole"): boolean {
  if (head.header("if-match") !== undefined || head.header("if-unmodified-since") !== undefined) return false;
  const asked = head.header("range");
  return range === "whole" ? asked === undefined : PLAIN_RANGE.test(asked ?? "");
}

const PLAIN_RANGE = /^bytes=(?:\d{1,15}-\d{0,15}|-\d{1,15})$/i;
