import { ports } from "@portico/core";

/** Every process of an instance derives the same key for this purpose. */
const PURPOSE = "redis-text";
const SIGNATURE_CHARACTERS = 43;

/**
 * Signs a text that goes through Redis. `place` is where the text belongs, such as its channel: a signed text is valid nowhere else.
 * Rejects with SigningUnavailable.
 */
export async function toSigned(signing: ports.Signing, place: string, text: string): Promise<string> {
  return (await signing.sign(PURPOSE, messageOf(place, text))) + text;
}

/** The text, or undefined if this instance did not sign it for this place. */
export async function fromSigned(signing: ports.Signing, place: string, signed: string): Promise<string | undefined> {
  const [signature, text] = [signed.slice(0, SIGNATURE_CHARACTERS), signed.slice(SIGNATURE_CHARACTERS)];
  try {
    return (await signing.verify(PURPOSE, messageOf(place, text), signature)) ? text : undefined;
  } catch (error) {
    if (error instanceof ports.SigningUnavailable) return undefined;
    throw error;
  }
}

/** The length keeps the end of the place apart from the beginning of the text. */
function messageOf(place: string, text: string): string {
  return `${place.length}:${place}${text}`;
}
