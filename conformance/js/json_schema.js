// The part of JSON Schema that the manifest's schema uses. An unknown keyword throws: a schema that grows must not
// be checked in part without anybody noticing.

const TYPES = {
  object: value => value !== null && typeof value === 'object' && !Array.isArray(value),
  array: Array.isArray,
  string: value => typeof value === 'string',
  boolean: value => typeof value === 'boolean',
  integer: value => typeof value === 'bigint' || Number.isInteger(value),
};
const SAID = new Set(['$schema', '$defs', 'title', 'description', 'properties', 'required', 'additionalProperties',
  'propertyNames', 'items', 'type', 'const', 'pattern', 'minimum', 'maximum', '$ref']);

/** Violations of a value: [{path: [...], keyword, message}]. */
export function violations(root, value, schema = root, path = []) {
  const result = [];
  const say = (keyword, message) => result.push({path, keyword, message});
  for (const keyword of Object.keys(schema)) if (!SAID.has(keyword)) throw new Error(`JSON Schema keyword ${keyword}`);
  if (schema.$ref) {
    const target = schema.$ref.slice(2).split('/').reduce((part, name) => part[name], root);
    result.push(...violations(root, value, target, path));
  }
  if (schema.type && !TYPES[schema.type](value)) {
    say('type', `is not of type ${schema.type}`);
    return result;
  }
  if ('const' in schema && value !== schema.const) say('const', `is not ${JSON.stringify(schema.const)}`);
  if (schema.pattern && typeof value === 'string' && !new RegExp(schema.pattern, 'u').test(value)) {
    say('pattern', `${JSON.stringify(value.slice(0, 80))} has not the form ${schema.pattern}`);
  }
  if ('minimum' in schema && value < schema.minimum) say('minimum', `is below ${schema.minimum}`);
  // The greatest bound of the schema is 2^63 - 1, which JSON.parse rounds up; larger integers never come this far.
  if ('maximum' in schema && value > schema.maximum) say('maximum', `is above ${schema.maximum}`);
  for (const [i, item] of schema.items && Array.isArray(value) ? value.entries() : []) {
    result.push(...violations(root, item, schema.items, [...path, i]));
  }
  if (TYPES.object(value)) {
    for (const key of schema.required ?? []) if (!Object.hasOwn(value, key)) say('required', `has no ${key}`);
    for (const [key, inner] of Object.entries(value)) {
      if (schema.propertyNames) result.push(...violations(root, key, schema.propertyNames, [...path, key]));
      const known = Object.hasOwn(schema.properties ?? {}, key);
      const part = known ? schema.properties[key] : schema.additionalProperties;
      if (part) result.push(...violations(root, inner, part, [...path, key]));
    }
  }
  return result;
}
