/** Chat Completions has no flag for a failed tool, so this text at the head of the result tells the model. */
export const TOOL_ERROR_MARK = "[tool error]";
