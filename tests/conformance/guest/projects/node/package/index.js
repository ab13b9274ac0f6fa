// SPDX-License-Identifier: Apache-2.0
exports.greet = (name) => `hello, ${name}`;
