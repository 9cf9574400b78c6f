/**
 * The two protocols of models, as pure functions without I/O: requests from one to the other, answers to events and back, and requests that
 * are made valid for one provider. The model proxy, agents and providers with a protocol of their own use the same.
 */
export { mergeUsage, readChatUsage, readMessagesUsage } from "./answer/usage.ts";
export {
  createProvider,
  defineModelProvider,
  ModelRefusal,
  type ModelProviderSpec,
  type ModelRefusalOptions,
  type OwnProvider,
  type ProviderPorts,
} from "./define-model-provider.ts";
export { errorBody, errorStatus, streamErrorEvent, upstreamFailure } from "./errors.ts";
export type { AnswerPiece, DroppedPiece, ToolCallPiece } from "./events-of-pieces.ts";
export { convertRequest, handedOver, type RequestBytes, setParameters, toBytes } from "./convert-bytes.ts";
export { createDecoder, EncodingUnknown } from "./content-encoding.ts";
export { EMPTY_PLACEHOLDER } from "./fit/fitted-request.ts";
export type { LighterRequest } from "./fit/fitted-request.ts";
export { ADDED_ROOM, parseLongData, writeLongData } from "./long-data.ts";
export { isJsonObject, type Json, type JsonObject, parseExactly, writeExactly } from "./json.ts";
export type { FinishReason, ModelError, ModelErrorKind, ModelEvent, StreamReader, StreamWriter, Usage } from "./model-events.ts";
export { messagesAnswer, type MessagesAnswerOptions, type ModelEvents, refusal } from "./messages-answer.ts";
export { ANSWER_BYTES, readAnyAnswer, readEitherForm, readWholeAnswer } from "./read-any-answer.ts";
export { readChatCompletion, readChatStream, readMessage, readMessagesStream } from "./read-answer.ts";
export { ERROR_BYTES, readErrorText } from "./read-error-text.ts";
export { readLines } from "./read-lines.ts";
export {
  type ModelQuestion,
  type QuestionAbility,
  type QuestionPart,
  type QuestionSource,
  type QuestionTool,
  type QuestionToolChoice,
  type QuestionTurn,
  readQuestion,
} from "./read-question.ts";
export { refusesPart, withoutRefusedPart } from "./refused-part.ts";
export { readUpstreamError, retryDelayIn } from "./read-upstream-error.ts";
export { readSignedToolId, signedToolId, toolIdForMessages } from "./tool-ids.ts";
export { defaultMaxTokens } from "./request/parameters.ts";
export { ConversionRefused } from "./request/fields.ts";
export { convertToResponses, type RefusedParts, type ResponsesRequestBytes } from "./responses/convert-to-responses.ts";
export { readResponse, readResponsesStream } from "./responses/read-response.ts";
export { refusedPart } from "./responses/refused-part.ts";
export { stopAt } from "./responses/stop-at.ts";
export type { RefusedPart } from "./responses/request-to-responses.ts";
export { AnswerFailed, writeChatCompletion, writeMessage } from "./write-answer.ts";
export { writeChatStream } from "./write-chat-stream.ts";
export { writeMessagesStream } from "./write-messages-stream.ts";
export { hasParameters, writeRequest, type WrittenRequest } from "./write-request.ts";
export { wellFormedJson } from "./well-formed-json.ts";
