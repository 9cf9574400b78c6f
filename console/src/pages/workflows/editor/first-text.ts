/** A small complete definition, with which a new workflow begins. */
export const FIRST_TEXT = `name: Hello
parameters: { type: object, properties: { name: { type: string, default: World } } }
nodes:
  greet: { type: transform, with: { value: "Hello \${{ parameters.name }}" } }
outputs: { greeting: "\${{ nodes.greet.output }}" }
`;
