import { hasMoreLevels, ports } from "@portico/core";

/** Throws NodeFailed if a value is too large or too deep for a node's output. */
export function assertSize(output: unknown): void {
  const { NODE_OUTPUT_BYTES: bytes, NODE_OUTPUT_LEVELS: levels } = ports;
  const fail = (code: string, message: string) => new ports.NodeFailed(code, message, { retryable: false });
  const tooLarge = () => fail("output_too_large", `The output is larger than ${bytes} bytes`);
  const tooDeep = () => fail("output_too_deep", `The output has more than ${levels} levels of lists and objects`);
  let text: string;
  try {
    text = JSON.stringify(output) ?? "";
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // JavaScript itself has two limits: the length of a string, and the depth of the stack.
    throw /string length/.test(error.message) ? tooLarge() : tooDeep();
  }
  if (Buffer.byteLength(text) > bytes) throw tooLarge();
  // Each level takes at least two characters. The depth is checked after the size, because shared values are visited at each of their places.
  if (text.length > 2 * levels && hasMoreLevels(output, levels)) throw tooDeep();
}
