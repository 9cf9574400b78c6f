import { isMediaId } from "../media.ts";
import { toMediaError } from "../translated-errors.ts";
import type { FileHandlers, FileServices } from "./file-services.ts";

/** Signs links to media of a user. */
export function mediaLinks({ links, media }: FileServices): FileHandlers["mediaLinks"] {
  return async ({ body, who: { userId }, fail }) => {
    const mediaIds = [...new Set(body.mediaIds)];
    // A malformed ID is reported before another user's ID (open points 10).
    const malformed = mediaIds.filter((mediaId) => !isMediaId(mediaId));
    if (malformed.length > 0) throw fail.invalid_media_request();
    if (userId === undefined) throw fail.media_identity_required();
    try {
      const found = await Promise.all(mediaIds.map((mediaId) => media.findFor(userId, mediaId)));
      // All links or no link, so that the caller does not learn which media belongs to another user.
      if (found.includes("forbidden")) throw fail.media_owner_forbidden();
      const items = await Promise.all(found.flatMap((each) => (typeof each === "string" ? [] : links.sign(each.media.mediaId))));
      return { items, missing: mediaIds.filter((_mediaId, at) => found[at] === "missing") };
    } catch (error) {
      throw toMediaError(error);
    }
  };
}
