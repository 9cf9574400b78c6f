import type { ports } from "@portico/core";
import { LINK_SECONDS } from "./limits.ts";

const PURPOSE = "media-link";
const SECONDS = /^[1-9][0-9]{0,11}$/;

/** The fields of a link, as received. */
interface PresentedLink {
  readonly mediaId: string;
  readonly expires: unknown;
  readonly signature: unknown;
}

/** Links to media. Every holder of a link can read the media for five minutes (specification 4.5, rule 7). Throws SigningUnavailable. */
export function createSignedLinks({ signing, clock }: { readonly signing: ports.Signing; readonly clock: ports.Clock }) {
  return {
    async sign(mediaId: string): Promise<{ readonly mediaId: string; readonly url: string; readonly expiresAt: string }> {
      // Rounded down to the second, so that a link is never valid for more than five minutes.
      const expires = Math.floor(clock.now() / 1000) + LINK_SECONDS;
      const signature = await signing.sign(PURPOSE, messageOf(mediaId, `${expires}`));
      const url = `/media/${mediaId}?expires=${expires}&signature=${signature}`;
      return { mediaId, url, expiresAt: new Date(expires * 1000).toISOString() };
    },
    /** When a valid link expires, in milliseconds since 1970. `expired` is returned only for links with a valid signature. */
    async check({ mediaId, expires, signature }: PresentedLink): Promise<number | "invalid" | "expired"> {
      if (typeof expires !== "string" || typeof signature !== "string" || !SECONDS.test(expires)) return "invalid";
      if (!(await signing.verify(PURPOSE, messageOf(mediaId, expires), signature))) return "invalid";
      const end = Number(expires) * 1000;
      return clock.now() < end ? end : "expired";
    },
  };
}

/** A HEAD works with the link of a GET: both read (open points 6). */
function messageOf(mediaId: string, expires: string): string {
  return `read\n${mediaId}\n${expires}`;
}
