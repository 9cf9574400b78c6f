import { parseXml, XmlElement } from "@rgrove/parse-xml";

/** The root of a store's answer. Undefined for invalid XML. */
export function readXml(text: string): XmlElement | undefined {
  try {
    // Stores send spaces to keep a connection open while they work, some of them before the XML declaration.
    return parseXml(text.trimStart()).root ?? undefined;
  } catch {
    return undefined;
  }
}

export function childrenOf(element: XmlElement, name: string): XmlElement[] {
  return element.children.filter((child) => child instanceof XmlElement).filter((child) => child.name === name);
}

/** Text of the first child with that name; empty if there is no such child. */
export function textOf(element: XmlElement, name: string): string {
  return childrenOf(element, name)[0]?.text ?? "";
}

/** The root, which must have that name. Throws Error for any other answer. */
export function expectRoot(root: XmlElement | undefined, name: string): XmlElement {
  if (root?.name !== name) throw new Error(`The store's answer is not a ${name}`);
  return root;
}
