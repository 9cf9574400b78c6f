/**
 * Checks event streams against the published grammar of their protocol, and joins their content. It intentionally shares no code with the
 * writers of the streams.
 */
export { assertChatStream, type CollectedCompletion, collectChatStream } from "./chat-stream-grammar.ts";
export { assertMessagesStream, type CollectedMessage, collectMessagesStream } from "./messages-stream-grammar.ts";
