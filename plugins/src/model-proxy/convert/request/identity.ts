import type { Dropped } from "../dropped.ts";
import type { JsonObject, JsonObjectDraft } from "../json.ts";
import { dropUnknown, readObject, readOptional, readString } from "./read-field.ts";

/** Vendors of Chat Completions refuse a longer `user`, and coding assistants send longer values. */
const CHAT_USER_LENGTH = 64;
const MESSAGES_USER_LENGTH = 256;
const METADATA_FIELDS = new Set(["user_id"]);

/** `metadata.user_id` becomes `user`. It only helps to detect abuse, so a value that is too long is dropped. */
export function identityToChat(body: JsonObject, chat: JsonObjectDraft, dropped: Dropped): void {
  const metadata = readOptional(body.metadata, "metadata", readObject);
  if (!metadata) return;
  dropUnknown(metadata, METADATA_FIELDS, "metadata.", dropped);
  const user = readOptional(metadata.user_id, "metadata.user_id", readString);
  if (!user) return;
  if (user.length <= CHAT_USER_LENGTH) chat.user = user;
  else dropped.add("metadata.user_id");
}

/**
 * `safety_identifier`, or else the older `user`, becomes `metadata.user_id`. The `metadata` of Chat Completions labels stored answers, and
 * is dropped.
 */
export function identityToMessages(body: JsonObject, messages: JsonObjectDraft, dropped: Dropped): void {
  const identifier = readOptional(body.safety_identifier, "safety_identifier", readString);
  const older = readOptional(body.user, "user", readString);
  const user = identifier || older;
  if (identifier && older && identifier !== older) dropped.add("user");
  if (!user) return;
  if (user.length <= MESSAGES_USER_LENGTH) messages.metadata = { user_id: user };
  else dropped.add(identifier ? "safety_identifier" : "user");
}
