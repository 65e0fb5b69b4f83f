#include "dispatch/schema_lexer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"

namespace facula::detail {
namespace {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

constexpr std::array<std::pair<char, char>, 10> escapes{{{'n', '\n'},
                                                         {'t', '\t'},
                                                         {'r', '\r'},
                                                         {'f', '\f'},
                                                         {'v', '\v'},
                                                         {'a', '\a'},
                                                         {'b', '\b'},
                                                         {'\\', '\\'},
                                                         {'\'', '\''},
                                                         {'"', '"'}}};

}  // namespace

Token SchemaLexer::take() {
  const Token taken = token_;
  advance();
  return taken;
}

bool SchemaLexer::accept(std::string_view symbol) {
  if (!at(symbol)) return false;
  advance();
  return true;
}

void SchemaLexer::expect(std::string_view symbol) {
  if (!accept(symbol)) fail_expected(concat("'", symbol, "'"));
}

std::string_view SchemaLexer::expect_word(std::string_view what) {
  if (token_.kind != Token::Word) fail_expected(what);
  return take().text;
}

void SchemaLexer::expect_end() {
  if (token_.kind != Token::End) fail_expected("the end");
}

void SchemaLexer::fail_expected(std::string_view what) const {
  const std::string got =
      token_.kind == Token::End ? std::string("the end") : concat("'", token_.text, "'");
  fail(concat("expected ", what, "; got ", got));
}

void SchemaLexer::fail_at(const Token& token, std::string_view message) const {
  const auto begin = static_cast<size_t>(token.text.data() - text_.data());
  const size_t line_break = begin == 0 ? std::string_view::npos : text_.rfind('\n', begin - 1);
  const size_t line_begin = line_break == std::string_view::npos ? 0 : line_break + 1;
  const size_t line_end = std::min(text_.find('\n', begin), text_.size());
  const size_t length = std::max<size_t>(1, std::min(token.text.size(), line_end - begin));
  throw_error(ErrorKind::Runtime,
              concat("parse_schema(): ", message, " at position ", begin, ":\n    ",
                     text_.substr(line_begin, line_end - line_begin), "\n    ",
                     std::string(begin - line_begin, ' '), std::string(length, '~'), " <--- HERE"));
}

void SchemaLexer::skip_space() {
  while (position_ < text_.size()) {
    if (peek() == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (is_space(peek())) {
      ++position_;
    } else {
      return;
    }
  }
}

size_t SchemaLexer::word_length() const {
  size_t n = 1;
  while (is_letter(peek(n)) || is_digit(peek(n))) ++n;
  return n;
}

// Digits, a point and an exponent; `j` makes it imaginary.
size_t SchemaLexer::number_length() const {
  size_t n = 0;
  while (is_digit(peek(n))) ++n;
  if (peek(n) == '.') ++n;
  while (is_digit(peek(n))) ++n;
  if (peek(n) == 'e' || peek(n) == 'E') {
    const size_t sign = peek(n + 1) == '+' || peek(n + 1) == '-' ? 1 : 0;
    if (is_digit(peek(n + 1 + sign))) n += 1 + sign;
    while (is_digit(peek(n))) ++n;
  }
  return peek(n) == 'j' ? n + 1 : n;
}

// 0 when the string does not end on its line.
size_t SchemaLexer::string_length() const {
  const char quote = peek();
  for (size_t n = 1; position_ + n < text_.size() && peek(n) != '\n'; ++n) {
    if (peek(n) == quote) return n + 1;
    if (peek(n) == '\\') ++n;
  }
  return 0;
}

size_t SchemaLexer::symbol_length() const {
  const std::string_view rest = text_.substr(position_);
  if (rest.starts_with("...")) return 3;
  return rest.starts_with("->") || rest.starts_with("::") ? 2 : 1;
}

void SchemaLexer::advance() {
  skip_space();
  if (position_ == text_.size()) {
    token_ = {Token::End, text_.substr(position_)};
    return;
  }
  const char c = peek();
  size_t length = 0;
  if (is_letter(c)) {
    token_.kind = Token::Word;
    length = word_length();
  } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
    token_.kind = Token::Number;
    length = number_length();
  } else if (c == '"' || c == '\'') {
    token_.kind = Token::String;
    length = string_length();
  } else {
    token_.kind = Token::Symbol;
    length = symbol_length();
  }
  token_.text = text_.substr(position_, std::max<size_t>(length, 1));
  if (length == 0) fail("the string has no end");
  position_ += length;
}

std::string SchemaLexer::unquote(const Token& token) const {
  const std::string_view body = token.text.substr(1, token.text.size() - 2);
  std::string value;
  for (size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      value += body[i];
      continue;
    }
    const char c = body[++i];  // a string does not end in a lone backslash
    const auto* known =
        std::find_if(escapes.begin(), escapes.end(), [c](const auto& e) { return e.first == c; });
    if (known != escapes.end()) {
      value += known->second;
      continue;
    }
    int code = 0;
    size_t digits = 0;
    for (; digits < 3 && i + digits < body.size(); ++digits) {
      const char octal = body[i + digits];
      if (octal < '0' || octal > '7') break;
      code = code * 8 + (octal - '0');
    }
    if (digits == 0 || code > 255) fail_at(token, "unknown escape in the string");
    value += static_cast<char>(code);
    i += digits - 1;
  }
  return value;
}

}  // namespace facula::detail
