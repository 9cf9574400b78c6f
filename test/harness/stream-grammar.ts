/**
 * Judges event streams by the published grammar of their protocol, and puts their content together. It knows nothing of the
 * code that writes them, on purpose.
 */
export { assertChatStream, type CollectedCompletion, collectChatStream } from "./chat-stream-grammar.ts";
export { assertMessagesStream, type CollectedMessage, collectMessagesStream } from "./messages-stream-grammar.ts";
